package lab

import "net/netip"

// A Place is where traffic starts or ends: a pod, the node itself, a client.
type Place struct {
	// Name tells the place from others of its node.
	Name string
	// Namespace is the place's own.
	Namespace *Namespace
	// Addresses are the place's own, IPv4 first.
	Addresses []netip.Addr
}

// IPv4 is the place's first IPv4 address.
func (p *Place) IPv4() netip.Addr { return p.first(netip.Addr.Is4) }

// IPv6 is the place's first IPv6 address.
func (p *Place) IPv6() netip.Addr { return p.first(netip.Addr.Is6) }

func (p *Place) first(is func(netip.Addr) bool) netip.Addr {
	for _, a := range p.Addresses {
		if is(a) {
			return a
		}
	}
	return netip.Addr{}
}

func (p *Place) String() string { return p.Name }
