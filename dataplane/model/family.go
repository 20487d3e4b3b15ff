package model

import (
	"fmt"
	"net/netip"
)

// Family is an IP family, with the number that nf_tables gives it
// (NFPROTO_IPV4 and NFPROTO_IPV6 in linux/netfilter.h).
type Family uint8

// The two families.
const (
	IPv4 Family = 2
	IPv6 Family = 10
)

// Families lists both, IPv4 first, for loops over them.
var Families = [...]Family{IPv4, IPv6}

// FamilyOf returns the family of an address. An IPv4 address mapped into IPv6
// counts as IPv4.
func FamilyOf(a netip.Addr) Family {
	if a.Unmap().Is4() {
		return IPv4
	}
	return IPv6
}

// Bits returns the length of an address of this family: 32 or 128.
func (f Family) Bits() int {
	if f == IPv4 {
		return 32
	}
	return 128
}

// String returns "IPv4" or "IPv6".
func (f Family) String() string {
	switch f {
	case IPv4:
		return "IPv4"
	case IPv6:
		return "IPv6"
	}
	return fmt.Sprintf("family %d", uint8(f))
}

// OfFamily returns those of addrs that belong to f, in their order.
func OfFamily(addrs []netip.Addr, f Family) []netip.Addr {
	var of []netip.Addr
	for _, a := range addrs {
		if FamilyOf(a) == f {
			of = append(of, a)
		}
	}
	return of
}

// PrefixesOfFamily returns those of prefixes that belong to f, in their order.
func PrefixesOfFamily(prefixes []netip.Prefix, f Family) []netip.Prefix {
	var of []netip.Prefix
	for _, p := range prefixes {
		if FamilyOf(p.Addr()) == f {
			of = append(of, p)
		}
	}
	return of
}
