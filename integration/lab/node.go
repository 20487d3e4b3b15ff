package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// maxPods is how many pods a range of this lab holds: hosts 2 to 254.
const maxPods = 253

// outsideTable is the routing table for what comes from the outside: all of it
// goes to the node, as if its routers sent service addresses there.
const outsideTable = 100

// Options say how large a node is to be. The zero value is a node with two
// pods and two remote ones, in the calling thread's namespace.
type Options struct {
	// Namespace becomes the node. It has no links but lo. Nil means the
	// namespace of the calling thread.
	Namespace *Namespace
	// Pods is the number of pods on the node, and RemotePods that of pods
	// behind the router: 1 to 253, 0 means 2.
	Pods, RemotePods int
}

// Validate reports the first field that is out of its range.
func (o Options) Validate() error {
	for _, f := range []struct {
		name  string
		count int
	}{{"Pods", o.Pods}, {"RemotePods", o.RemotePods}} {
		if f.count < 0 || f.count > maxPods {
			return fmt.Errorf("lab: option %s is %d, not from 0 to %d", f.name, f.count, maxPods)
		}
	}
	return nil
}

// A Node is a cluster node as small as can be, with what is around it:
//
//	pod-1, pod-2, …    one veth each, routed: no bridge
//	     |
//	   node            192.168.7.1, 192.168.8.1 and fd00:7::1 on eth0
//	     |
//	   router          192.168.7.2, 192.168.8.2, fd00:7::2
//	   |    |
//	   |  outside      192.168.7.100, fd00:7::100
//	   |
//	remote-1, remote-2, …
//
// All of it is namespaces of this process. Pods have addresses in
// 10.244.1.0/24 and fd00:244:1::/64, remote pods in 10.244.2.0/24 and
// fd00:244:2::/64. Whatever the outside sends, service addresses included, is
// routed to the node. What the node sends to an address that is nowhere is
// answered with ICMP "network unreachable" by the router, five times at once
// and then once a second.
type Node struct {
	// Self is the node: traffic from its own processes.
	Self *Place
	// Pods are this node's.
	Pods []*Place
	// Remote are pods of another node.
	Remote []*Place
	// Outside is a client that is no part of the cluster.
	Outside *Place

	router *Namespace
	links  []string // in the node's namespace, to be removed
}

// NewNode makes a node. The caller closes it.
func NewNode(o Options) (*Node, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	n := new(Node)
	if err := n.build(o); err != nil {
		return nil, errors.Join(fmt.Errorf("make a node: %w", err), n.Close())
	}
	return n, nil
}

// PodRanges are the ranges of the addresses of the node's pods, IPv4 first:
// what its Node object calls podCIDRs.
func (n *Node) PodRanges() []netip.Prefix { return slices.Clone(podRanges) }

// Places are all places from which traffic can start.
func (n *Node) Places() []*Place {
	return slices.Concat([]*Place{n.Self, n.Outside}, n.Pods, n.Remote)
}

func (n *Node) build(o Options) error {
	self, err := n.claim(o.Namespace)
	if err != nil {
		return err
	}
	n.Self = &Place{Name: "node", Namespace: self, Addresses: hosts(nodeOnLAN)}
	if n.router, err = NewNamespace("router"); err != nil {
		return err
	}
	near, err := newSetup(self, forwarding...)
	if err != nil {
		return err
	}
	far, err := newSetup(n.router, forwarding...)
	if err != nil {
		return errors.Join(err, near.close())
	}
	n.joinLAN(near, far)
	err = n.populate(near, far, o)
	return errors.Join(err, near.close(), far.close())
}

// claim opens the namespace that becomes the node, or refuses it.
func (n *Node) claim(given *Namespace) (*Namespace, error) {
	self, err := CurrentNamespace("node")
	if given != nil {
		err = given.Do(func() (err error) {
			self, err = CurrentNamespace("node")
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	s, err := newSetup(self)
	if err != nil {
		return nil, errors.Join(err, self.Close())
	}
	s.empty()
	if err := s.close(); err != nil {
		return nil, errors.Join(err, self.Close())
	}
	return self, nil
}

// joinLAN makes the wire between node and router, and their routes by it.
func (n *Node) joinLAN(near, far *setup) {
	near.veth("eth0", far, "eth0")
	n.links = append(n.links, "eth0")
	for i, p := range nodeOnLAN {
		near.address("eth0", p)
		far.address("eth0", routerOnLAN[i])
	}
	for i, pods := range podRanges {
		node, router := sameFamily(nodeOnLAN, pods.Addr()), sameFamily(routerOnLAN, pods.Addr())
		near.route(everywhere(router), router, "eth0")
		near.route(outsiders[i], router, "eth0")
		far.route(pods, node, "eth0")
		far.routeIn(outsideTable, everywhere(node), node, "eth0")
	}
}

// populate attaches all places to node and router.
func (n *Node) populate(near, far *setup, o Options) (err error) {
	if n.Pods, err = pods(near, "pod", orTwo(o.Pods), podRanges); err != nil {
		return err
	}
	for _, p := range n.Pods {
		n.links = append(n.links, link(p.Name))
	}
	if n.Remote, err = pods(far, "remote", orTwo(o.RemotePods), remoteRanges); err != nil {
		return err
	}
	gateways := []netip.Addr{sameFamily(routerOnLAN, netip.IPv4Unspecified()), sameFamily(routerOnLAN, netip.IPv6Unspecified())}
	if n.Outside, err = attach(far, "outside", hosts(outsiders), gateways); err != nil {
		return err
	}
	for _, a := range n.Outside.Addresses {
		far.arriving(link("outside"), a, outsideTable)
	}
	return nil
}

// pods attaches count pods to router, with addresses in ranges.
func pods(router *setup, name string, count int, ranges []netip.Prefix) ([]*Place, error) {
	var places []*Place
	for i := range count {
		var addresses, gateways []netip.Addr
		for _, r := range ranges {
			addresses = append(addresses, host(r, i+2))
			gateways = append(gateways, host(r, 1))
		}
		p, err := attach(router, fmt.Sprintf("%s-%d", name, i+1), addresses, gateways)
		if err != nil {
			return places, err
		}
		places = append(places, p)
	}
	return places, nil
}

// attach makes a place on a wire to router, which has the gateways' addresses
// on its side. Nothing but the gateway is on the wire: a place's traffic to
// itself through a service address passes the router as well.
func attach(router *setup, name string, addresses, gateways []netip.Addr) (*Place, error) {
	ns, err := NewNamespace(name)
	if err != nil {
		return nil, err
	}
	inner, err := newSetup(ns)
	if err != nil {
		return nil, errors.Join(err, ns.Close())
	}
	router.veth(link(name), inner, "eth0")
	for i, a := range addresses {
		router.address(link(name), single(gateways[i]))
		router.route(single(a), netip.Addr{}, link(name))
		inner.address("eth0", single(a))
		inner.route(single(gateways[i]), netip.Addr{}, "eth0")
		inner.route(everywhere(a), gateways[i], "eth0")
	}
	if err := inner.close(); err != nil {
		return nil, errors.Join(err, ns.Close())
	}
	return &Place{Name: name, Namespace: ns, Addresses: addresses}, nil
}

// Close removes the node's links and lets go of all namespaces. Servers and
// connections are the caller's to close, before.
func (n *Node) Close() error {
	var errs []error
	if n.Self != nil {
		errs = append(errs, n.unlink())
	}
	for _, p := range n.Places() {
		if p != nil {
			errs = append(errs, p.Namespace.Close())
		}
	}
	if n.router != nil {
		errs = append(errs, n.router.Close())
	}
	return errors.Join(errs...)
}

func (n *Node) unlink() error {
	nl, err := n.Self.Namespace.Netlink()
	if err != nil {
		return err
	}
	s := &setup{ns: n.Self.Namespace, nl: nl}
	for _, l := range n.links {
		s.remove(l)
	}
	return s.close()
}

// link names the router's end of the wire to a place. Fifteen bytes are all
// that the kernel takes (IFNAMSIZ, include/uapi/linux/if.h).
func link(place string) string { return "veth-" + place }

func orTwo(n int) int {
	if n == 0 {
		return 2
	}
	return n
}
