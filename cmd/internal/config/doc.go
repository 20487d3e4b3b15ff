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
//     (pkg/proxy/apis/config and cmd/kube-proxy/app in its source), with these
//     exceptions. Refused here: modes other than iptables; settings of
//     Windows; an interface name longer than the kernel's; a range of IPv4
//     addresses mapped into IPv6; a version to be reported by --version.
//     Accepted here: --metrics-port=0, as --healthz-port=0, for no server; an
//     empty --cluster-cidr, for none; --write-config-to beside an address
//     without a port.
//   - A field that is not known, and all but the last of one that is there
//     several times, are not read, as with kube-proxy, and each is noted.
//   - What kube-proxy would act on and this proxy does not is never dropped in
//     silence: it comes back as a note to be logged.
//
// Nothing here reads a file, the environment or the node.
package config
