// Package config turns kube-proxy's flags and its KubeProxyConfiguration file
// into one checked Config.
//
// Guarantees:
//   - A Config that came back without an error is complete: defaults are
//     filled in and every value is in range and parsed, so nobody behind it
//     checks again.
//   - All problems are reported at once, one line each, which names the field
//     or flag, the value and what is allowed, and for a file the line.
//   - Defaults, and which values are accepted, are those of kube-proxy 1.37
//     (pkg/proxy/apis/config in its source). Two things are stricter: an
//     unknown or repeated field of a file is refused, where kube-proxy ignores
//     it after a log line; and an interface name longer than the kernel's is
//     refused, where kube-proxy fails later. One is laxer: a feature gate of
//     an unknown name is a note.
//   - What kube-proxy would act on and this proxy does not is never dropped in
//     silence: it comes back as a note to be logged.
//
// Nothing here reads a file, the environment or the node.
package config
