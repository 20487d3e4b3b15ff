package lab

import (
	"net"
	"net/netip"
)

// The addresses of the lab. Host 1 of a range of pods is their gateway, pods
// have those from 2 on.
var (
	podRanges    = prefixes("10.244.1.0/24", "fd00:244:1::/64")
	remoteRanges = prefixes("10.244.2.0/24", "fd00:244:2::/64")
	nodeOnLAN    = prefixes("192.168.7.1/24", "192.168.8.1/24", "fd00:7::1/64")
	routerOnLAN  = prefixes("192.168.7.2/24", "192.168.8.2/24", "fd00:7::2/64")
	outsiders    = prefixes("192.168.7.100/32", "fd00:7::100/128")
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		list[i] = netip.MustParsePrefix(t)
	}
	return list
}

func hosts(list []netip.Prefix) []netip.Addr {
	addrs := make([]netip.Addr, len(list))
	for i, p := range list {
		addrs[i] = p.Addr()
	}
	return addrs
}

// host is the address of number n, up to 255, in r.
func host(r netip.Prefix, n int) netip.Addr {
	b := r.Masked().Addr().AsSlice()
	b[len(b)-1] = byte(n)
	a, _ := netip.AddrFromSlice(b)
	return a
}

// sameFamily is the first address of list that is of a's family.
func sameFamily(list []netip.Prefix, a netip.Addr) netip.Addr {
	for _, p := range list {
		if p.Addr().Is4() == a.Is4() {
			return p.Addr()
		}
	}
	return netip.Addr{}
}

// single is the prefix that a alone is in.
func single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// everywhere is the default route's prefix in a's family.
func everywhere(a netip.Addr) netip.Prefix {
	if a.Is4() {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
