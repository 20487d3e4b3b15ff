package model

import (
	"net/netip"
	"slices"
	"testing"
)

func addrs(ss ...string) (as []netip.Addr) {
	for _, s := range ss {
		as = append(as, netip.MustParseAddr(s))
	}
	return as
}

func TestFamilyOf(t *testing.T) {
	for s, want := range map[string]Family{"10.0.0.1": IPv4, "::ffff:10.0.0.1": IPv4, "fd00::1": IPv6, "::": IPv6} {
		if got := FamilyOf(netip.MustParseAddr(s)); got != want {
			t.Errorf("%s is %v, want %v", s, got, want)
		}
	}
}

func TestOfFamilyKeepsOrder(t *testing.T) {
	mixed := addrs("fd00::2", "10.0.0.2", "fd00::1", "10.0.0.1")
	if got := OfFamily(mixed, IPv4); !slices.Equal(got, addrs("10.0.0.2", "10.0.0.1")) {
		t.Errorf("IPv4: %v", got)
	}
	if got := OfFamily(mixed, IPv6); !slices.Equal(got, addrs("fd00::2", "fd00::1")) {
		t.Errorf("IPv6: %v", got)
	}
}

func TestParseProtocol(t *testing.T) {
	for s, want := range map[string]Protocol{"TCP": TCP, "UDP": UDP, "SCTP": SCTP} {
		if got, err := ParseProtocol(s); got != want || err != nil {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "tcp", "ICMP"} {
		if got, err := ParseProtocol(s); err == nil {
			t.Errorf("%q is %v", s, got)
		}
	}
}

func TestPortNameIsWrittenAsInComments(t *testing.T) {
	n := Name{"kube-system", "dns"}
	for want, p := range map[string]PortName{
		"kube-system/dns":     {n, PortKey{"", UDP}},
		"kube-system/dns:tcp": {n, PortKey{"tcp", TCP}},
	} {
		if got := p.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestPrimaryFamilyIsThatOfTheFirstAddress(t *testing.T) {
	for want, n := range map[Family]Node{
		IPv4: {},
		IPv6: {Addresses: addrs("fd00::1", "10.0.0.1")},
	} {
		if got := n.Primary(); got != want {
			t.Errorf("%v: %v, want %v", n.Addresses, got, want)
		}
	}
	n := Node{Addresses: addrs("fd00::1", "10.0.0.1")}
	if got := n.Address(IPv4); got != addrs("10.0.0.1")[0] {
		t.Errorf("IPv4 address %v", got)
	}
	if got := (Node{}).Address(IPv4); got.IsValid() {
		t.Errorf("a node without addresses has %v", got)
	}
}

func TestEqualSeesEveryField(t *testing.T) {
	node := Node{Name: "n"}
	for field, other := range map[string]Node{
		"name": {Name: "m"}, "zone": {Name: "n", Zone: "z"}, "addresses": {Name: "n", Addresses: addrs("10.0.0.1")},
		"pod ranges": {Name: "n", PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		"local":      {Name: "n", Local: addrs("10.0.0.1")},
	} {
		if node.Equal(other) {
			t.Errorf("a node with another %s is equal", field)
		}
	}
	ep := Endpoint{Addr: netip.MustParseAddrPort("10.0.0.1:80")}
	for field, other := range map[string]Endpoint{
		"port": {Addr: netip.MustParseAddrPort("10.0.0.1:81")}, "ready": {Addr: ep.Addr, Ready: true},
		"serving": {Addr: ep.Addr, Serving: true}, "terminating": {Addr: ep.Addr, Terminating: true},
		"node": {Addr: ep.Addr, Node: "n"}, "zones": {Addr: ep.Addr, Zones: []string{"z"}}, "nodes": {Addr: ep.Addr, Nodes: []string{"n"}},
	} {
		if ep.Equal(other) {
			t.Errorf("an endpoint with another %s is equal", field)
		}
	}
	if !node.Equal(Node{Name: "n"}) || !ep.Equal(Endpoint{Addr: ep.Addr}) {
		t.Error("equal values are not")
	}
}
