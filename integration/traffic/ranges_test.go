package traffic

import (
	"fmt"
	"testing"
)

// The ranges that the rows below allow.
const (
	outsideOnly = `"192.168.7.100/32", "fd00:7::100/128"`
	lanOnly     = `"192.168.7.0/24", "fd00:7::/64"`
	podsOnly    = `"10.244.1.0/24", "fd00:244:1::/64"`
	nobodyHere  = `"172.16.0.0/12", "2001:db8:f::/48"`
)

// limited is a service with two ingress addresses of each family.
func limited(ranges string) service {
	s := service{name: "limited", number: 1, kind: "LoadBalancer", endpoints: at("pod-1", "remote-1")}
	for _, f := range []frontend{ingress, secondIngress} {
		s.ingress += fmt.Sprintf("{ip: %q}, {ip: %q}, ", f(s, false).Addr(), f(s, true).Addr())
	}
	s.spec = fmt.Sprintf("loadBalancerSourceRanges: [%s]", ranges)
	return s
}

// TestSourceRanges edits the list of one service again and again.
func TestSourceRanges(t *testing.T) {
	t.Parallel()
	p := newProxy(t, settings())
	answer := masqueraded("pod-1", "remote-1")
	for _, step := range []struct {
		ranges              string
		outside, node, pods want
	}{
		{"", answer, answer, answer},
		{outsideOnly, answer, dropped(), dropped()},
		{nobodyHere, dropped(), dropped(), dropped()},
		// The node's own address is in it, and the outside's.
		{lanOnly, answer, answer, dropped()},
		{podsOnly, dropped(), dropped(), answer},
		{podsOnly + ", " + outsideOnly, answer, dropped(), answer},
		{nobodyHere + `, "0.0.0.0/0", "::/0"`, answer, answer, answer},
	} {
		t.Run(step.ranges, func(t *testing.T) {
			s := limited(step.ranges)
			p.set(t, s)
			rows := fromAll([]string{"outside"}, s, step.outside, ingress, secondIngress)
			rows = append(rows, fromAll([]string{"node"}, s, step.node, ingress, secondIngress)...)
			rows = append(rows, fromAll([]string{client}, s, step.pods, ingress, secondIngress)...)
			// Neither cluster IP nor node port is limited.
			rows = append(rows, fromAll(everybody(), s, answer, nodePort)...)
			rows = append(rows, fromAll([]string{"outside", "node"}, s, answer, clusterIP)...)
			rows = append(rows, fromAll([]string{client}, s, kept("pod-1", "remote-1"), clusterIP)...)
			p.check(t, rows)
		})
	}
}

func TestSourceRangesWithLocalPolicy(t *testing.T) {
	t.Parallel()
	s := limited(outsideOnly)
	s.spec += ", externalTrafficPolicy: Local, healthCheckNodePort: 31001"
	p := newProxy(t, settings())
	p.set(t, s)
	p.check(t, append(
		fromAll([]string{"outside"}, s, kept("pod-1"), ingress, secondIngress, nodePort),
		fromAll([]string{client}, s, dropped(), ingress, secondIngress)...))
}

// TestNodeThatHasTheIngressAddressItself sends from that very address, as a
// kernel does to one of its own: where the node may, it may too.
func TestNodeThatHasTheIngressAddressItself(t *testing.T) {
	t.Parallel()
	p := newProxy(t, settings())
	s := limited(lanOnly)
	p.own(t, "vip", ingress(s, false).Addr(), ingress(s, true).Addr())
	for _, c := range []struct {
		ranges string
		want   want
	}{{lanOnly, masqueraded("pod-1", "remote-1")}, {podsOnly, dropped()}} {
		s := limited(c.ranges)
		p.set(t, s)
		p.check(t, fromAll([]string{"node"}, s, c.want, ingress))
	}
}

// TestIngressOfModeProxyIsLeftToTheBalancer flips the mode by the status alone.
func TestIngressOfModeProxyIsLeftToTheBalancer(t *testing.T) {
	t.Parallel()
	p := newProxy(t, settings())
	s := service{name: "proxied", number: 1, kind: "LoadBalancer"}
	withModes := func(first, second string) service {
		s := s
		for mode, f := range map[string]frontend{first: ingress, second: secondIngress} {
			for _, v6 := range []bool{false, true} {
				s.ingress += fmt.Sprintf("{ip: %q, ipMode: %s}, ", f(s, v6).Addr(), mode)
			}
		}
		return s
	}
	answer := masqueraded("pod-1")
	for _, step := range []struct {
		name          string
		service       service
		first, second want
	}{
		{"first is the balancer's", withModes("Proxy", "VIP").with(at("pod-1")...), untouched(), answer},
		{"second is the balancer's", withModes("VIP", "Proxy").with(at("pod-1")...), answer, untouched()},
		{"without endpoints", withModes("Proxy", "VIP"), untouched(), refused()},
		{"and the other way round", withModes("VIP", "Proxy"), refused(), untouched()},
	} {
		t.Run(step.name, func(t *testing.T) {
			p.set(t, step.service)
			// The node's own packets are never refused at such an address.
			p.check(t, append(
				fromAll([]string{client, "outside"}, step.service, step.first, ingress),
				fromAll([]string{client, "outside"}, step.service, step.second, secondIngress)...))
		})
	}
}
