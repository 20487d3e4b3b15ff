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
//     (pkg/proxy/apis/config in its source), with these exceptions. Refused
//     here: an unknown or repeated field of a file, which kube-proxy ignores
//     after a log line; an interface name longer than the kernel's; a range of
//     IPv4 addresses mapped into IPv6; modes other than iptables. Accepted
//     here, with a note: a feature gate of any name, and any value of what has
//     no effect.
//   - What kube-proxy would act on and this proxy does not is never dropped in
//     silence: it comes back as a note to be logged.
//
// Nothing here reads a file, the environment or the node.
package config
