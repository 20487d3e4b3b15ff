package config

import (
	"net"
	"net/netip"
	"strconv"

	netutils "k8s.io/utils/net"
)

// Addresses and prefixes are read by k8s.io/utils/net since, unlike netip, it
// takes leading zeros ("10.096.0.1"), and kube-proxy serves files that have
// them.

func parseAddr(s string) (netip.Addr, bool) {
	a, ok := netip.AddrFromSlice(netutils.ParseIPSloppy(s))
	return a.Unmap(), ok
}

// parsePrefix returns the masked prefix. A range of IPv4 addresses mapped into
// IPv6 is none: no packet carries them.
func parsePrefix(s string) (netip.Prefix, bool) {
	_, cidr, err := netutils.ParseCIDRSloppy(s)
	if err != nil {
		return netip.Prefix{}, false
	}
	addr, _ := netip.AddrFromSlice(cidr.IP)
	bits, size := cidr.Mask.Size()
	if addr.Is4In6() || size != addr.BitLen() {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(addr, bits), true
}

func parseAddrPort(s string) (netip.AddrPort, bool) {
	host, service, err := net.SplitHostPort(s)
	if err != nil {
		return netip.AddrPort{}, false
	}
	addr, ok := parseAddr(host)
	port, err := strconv.ParseUint(service, 10, 16)
	if !ok || err != nil || port == 0 {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(addr, uint16(port)), true
}
