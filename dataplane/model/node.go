package model

import (
	"net/netip"
	"slices"
)

// Node is what is known of the node that rules are for.
type Node struct {
	// Name is the name of the Node object. An endpoint is local when it names
	// this node, and by nothing else.
	Name string
	// Zone is the node's topology.kubernetes.io/zone label; empty without one.
	Zone string
	// Addresses are the node's own addresses as the cluster knows them, at
	// most one of each family, the primary family first.
	Addresses []netip.Addr
	// PodCIDRs are the ranges from which this node's pods have addresses, at
	// most one of each family.
	PodCIDRs []netip.Prefix
	// Local are all addresses of the node's interfaces, sorted, loopback and
	// link-local ones included: those on which node ports may be served.
	Local []netip.Addr
}

// Equal reports whether n and o are the same in every respect.
func (n Node) Equal(o Node) bool {
	return n.Name == o.Name && n.Zone == o.Zone &&
		slices.Equal(n.Addresses, o.Addresses) &&
		slices.Equal(n.PodCIDRs, o.PodCIDRs) &&
		slices.Equal(n.Local, o.Local)
}

// Address returns the node's address of family f; not valid if it has none.
func (n Node) Address(f Family) netip.Addr {
	for _, a := range n.Addresses {
		if FamilyOf(a) == f {
			return a
		}
	}
	return netip.Addr{}
}

// Primary returns the node's primary family, without which it cannot serve:
// IPv4 if no address is known.
func (n Node) Primary() Family {
	if len(n.Addresses) == 0 {
		return IPv4
	}
	return FamilyOf(n.Addresses[0])
}
