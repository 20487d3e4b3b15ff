package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A setup gives one namespace its links, addresses and routes. It remembers
// its first error, which close returns, and does nothing after it.
type setup struct {
	ns    *Namespace
	nl    *netlink.Handle
	err   error
	given []given
}

// given is an address that a link was given.
type given struct {
	link    string
	address netip.Addr
}

// A sysctl is a file below /proc/sys and what is written into it.
type sysctl struct{ name, value string }

// sysctls are set in every namespace before it has links, which take the
// defaults over.
var sysctls = []sysctl{
	{"net/ipv6/conf/all/disable_ipv6", "0"},
	{"net/ipv6/conf/default/disable_ipv6", "0"},
	// Addresses are usable as soon as they are there.
	{"net/ipv6/conf/default/accept_dad", "0"},
	{"net/ipv6/conf/default/accept_ra", "0"},
	// The host's values of rp_filter would come in otherwise: net namespaces
	// inherit IPv4's (devinet_init_net, Linux 6.18).
	{"net/ipv4/conf/all/rp_filter", "0"},
	{"net/ipv4/conf/default/rp_filter", "0"},
	// Every refusal is answered, not one in a second. A rate limit of 0 would
	// do it for IPv4 too, but empty the bucket from which "network unreachable"
	// is paid (inet_peer_xrlim_allow and ip_error, net/ipv4, Linux 6.1).
	{"net/ipv4/icmp_ratemask", "0"},
	{"net/ipv6/icmp/ratelimit", "0"},
}

// forwarding is what makes a namespace a router.
var forwarding = []sysctl{
	{"net/ipv4/ip_forward", "1"},
	{"net/ipv6/conf/all/forwarding", "1"},
	{"net/ipv4/conf/all/send_redirects", "0"},
	{"net/ipv4/conf/default/send_redirects", "0"},
}

func newSetup(ns *Namespace, more ...sysctl) (*setup, error) {
	nl, err := ns.Netlink()
	if err != nil {
		return nil, err
	}
	s := &setup{ns: ns, nl: nl}
	s.sysctls(sysctls)
	s.sysctls(more)
	return s, nil
}

// close waits until what was set up is in use.
func (s *setup) close() error {
	s.await()
	s.nl.Close()
	return s.err
}

// patience is how long an address may take until it is in use, and pause how
// long it is left alone before the next look.
const (
	patience = 10 * time.Second
	pause    = time.Millisecond
)

// await waits until the kernel delivers to all addresses and answers
// neighbours who look for them: it comes to that, for IPv6, only some time
// after it has said that it has the address, and makes a local route when it is
// done (addrconf_dad_work, net/ipv6/addrconf.c, Linux 6.18).
func (s *setup) await() {
	end := time.Now().Add(patience)
	for _, g := range s.given {
		s.onLink(g.link, func(l netlink.Link) error {
			return s.awaitOne(l, g.address, end)
		}, "wait for address %s of link %s", g.address, g.link)
	}
}

func (s *setup) awaitOne(l netlink.Link, a netip.Addr, end time.Time) error {
	looks := time.NewTicker(pause)
	defer looks.Stop()
	for {
		local, err := s.isLocal(l, a)
		if local || err != nil {
			return err
		}
		if time.Now().After(end) {
			return os.ErrDeadlineExceeded
		}
		<-looks.C
	}
}

// isLocal reports whether the kernel delivers to a on a link.
func (s *setup) isLocal(l netlink.Link, a netip.Addr) (bool, error) {
	family := netlink.FAMILY_V6
	if a.Is4() {
		family = netlink.FAMILY_V4
	}
	want := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: ipNet(single(a)), Table: unix.RT_TABLE_LOCAL}
	routes, err := s.nl.RouteListFiltered(family, want, netlink.RT_FILTER_OIF|netlink.RT_FILTER_DST|netlink.RT_FILTER_TABLE)
	return len(routes) > 0, err
}

// try records what fn fails with, unless something failed before.
func (s *setup) try(fn func() error, format string, args ...any) {
	if s.err != nil {
		return
	}
	if err := fn(); err != nil {
		s.err = fmt.Errorf("%s: %s: %w", s.ns, fmt.Sprintf(format, args...), err)
	}
}

func (s *setup) sysctls(list []sysctl) {
	for _, c := range list {
		s.try(func() error { return s.ns.write(c) }, "set %s to %s", c.name, c.value)
	}
}

func (n *Namespace) write(c sysctl) error {
	return n.Do(func() error {
		return os.WriteFile(filepath.Join("/proc/sys", c.name), []byte(c.value), 0)
	})
}

// veth joins s to peer by a pair of links, and sets both up.
func (s *setup) veth(name string, peer *setup, peerName string) {
	s.try(func() error {
		return s.nl.LinkAdd(&netlink.Veth{
			LinkAttrs:     netlink.LinkAttrs{Name: name},
			PeerName:      peerName,
			PeerNamespace: netlink.NsFd(peer.ns.handle),
		})
	}, "make link %s", name)
	peer.up(peerName)
	s.up(name)
}

func (s *setup) up(name string) {
	s.onLink(name, s.nl.LinkSetUp, "set link %s up", name)
}

// onLink tries fn with the link of that name.
func (s *setup) onLink(name string, fn func(netlink.Link) error, format string, args ...any) {
	s.try(func() error {
		link, err := s.nl.LinkByName(name)
		if err != nil {
			return err
		}
		return fn(link)
	}, format, args...)
}

func (s *setup) address(link string, p netip.Prefix) {
	s.onLink(link, func(l netlink.Link) error {
		return s.nl.AddrAdd(l, &netlink.Addr{IPNet: ipNet(p), Flags: unix.IFA_F_NODAD})
	}, "add address %s to link %s", p, link)
	s.given = append(s.given, given{link, p.Addr()})
}

// route sends to p over link, through the router via if that is valid.
func (s *setup) route(p netip.Prefix, via netip.Addr, link string) {
	s.routeIn(unix.RT_TABLE_MAIN, p, via, link)
}

func (s *setup) routeIn(table int, p netip.Prefix, via netip.Addr, link string) {
	s.onLink(link, func(l netlink.Link) error {
		r := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: ipNet(p), Table: table}
		if via.IsValid() {
			r.Gw = via.AsSlice()
		} else if p.Addr().Is4() {
			r.Scope = netlink.SCOPE_LINK
		}
		return s.nl.RouteAdd(r)
	}, "add route to %s by link %s", p, link)
}

// arriving makes packets of address's family that come in over link look table
// up first.
func (s *setup) arriving(link string, address netip.Addr, table int) {
	rule := netlink.NewRule()
	rule.IifName, rule.Table = link, table
	rule.Family = unix.AF_INET6
	if address.Is4() {
		rule.Family = unix.AF_INET
	}
	s.try(func() error { return s.nl.RuleAdd(rule) }, "add a rule for packets from link %s", link)
}

// empty fails unless there is no link but lo: a namespace that has more may be
// one that others use.
func (s *setup) empty() {
	s.try(func() error {
		links, err := s.nl.LinkList()
		if err != nil {
			return err
		}
		for _, l := range links {
			if l.Type() != "device" || l.Attrs().Name != "lo" {
				return fmt.Errorf("there is a link %s already", l.Attrs().Name)
			}
		}
		return nil
	}, "make a node of this namespace")
}

// remove deletes a link, with its peer, and everything that hangs on them.
func (s *setup) remove(link string) {
	s.try(func() error {
		l, err := s.nl.LinkByName(link)
		if errors.As(err, new(netlink.LinkNotFoundError)) {
			return nil
		}
		if err != nil {
			return err
		}
		return s.nl.LinkDel(l)
	}, "delete link %s", link)
}

// AddLink gives n a link that is up and has these addresses. What is sent over
// it goes nowhere.
func (n *Namespace) AddLink(name string, addresses ...netip.Prefix) error {
	s, err := newSetup(n)
	if err != nil {
		return err
	}
	s.veth(name, s, name+"-end")
	for _, a := range addresses {
		s.address(name, a)
	}
	return s.close()
}
