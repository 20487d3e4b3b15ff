package flows

import (
	"net/netip"
	"testing"

	"github.com/nlproxy/nlproxy/conntrack"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	ct "github.com/ti-mo/conntrack"
)

func TestRestartMovesNoFlow(t *testing.T) {
	const flows = 1000
	n := node(t)
	p := newProxy(t, n.Self.Namespace)
	p.put(t, service(n.Pods[0], n.Remote[0], n.Remote[1]))
	p.pass(t)
	open := labtest.Open(t, n.Pods[2], "udp", netip.MustParseAddrPort("10.96.0.1:80"), flows)
	p.start(t)
	p.set(t, nil)
	if pass := p.pass(t); pass.Flows < flows || len(pass.Deleted) != 0 {
		t.Errorf("%d flows seen, deleted: %v", pass.Flows, pass.Deleted)
	}
	open.Ask(t)
	p.put(t, service(n.Remote[0], n.Remote[1]))
	if pass := p.pass(t); pass.Deleted[conntrack.EndpointGone] == 0 {
		t.Error("no flow is deleted when an endpoint goes, so that the rest shows nothing")
	}
}

// ctnetlink is ti-mo/conntrack's connection to a namespace.
func ctnetlink(t testing.TB, ns *lab.Namespace) (c *ct.Conn) {
	t.Helper()
	if err := ns.Do(func() (err error) { c, err = ct.Dial(nil); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// made is a UDP flow that is answered by an endpoint.
func made(client, to, by netip.AddrPort, zone uint16) ct.Flow {
	f := ct.NewFlow(17, 0, client.Addr(), to.Addr(), client.Port(), to.Port(), 3600, 0)
	f.TupleReply.IP.SourceAddress, f.TupleReply.Proto.SourcePort = by.Addr(), by.Port()
	f.Zone = zone
	return f
}

func TestFlowsAreDeletedInTheirZone(t *testing.T) {
	n := node(t)
	p := newProxy(t, n.Self.Namespace)
	p.put(t, service(n.Pods[0]))
	p.pass(t)
	c := ctnetlink(t, n.Self.Namespace)
	client, to := netip.MustParseAddrPort("10.244.1.99:4000"), netip.MustParseAddrPort("10.96.0.1:80")
	right, stale := netip.AddrPortFrom(n.Pods[0].IPv4(), target), netip.AddrPortFrom(n.Pods[1].IPv4(), target)
	for zone, by := range map[uint16]netip.AddrPort{0: right, 3: stale, 4: right, 5: stale} {
		if err := c.Create(made(client, to, by, zone)); err != nil {
			t.Fatal(err)
		}
	}
	p.put(t, service(n.Pods[0], n.Remote[0]))
	p.put(t, service(n.Pods[0]))
	if pass := p.pass(t); pass.Deleted[conntrack.EndpointGone] != 2 {
		t.Errorf("deleted: %v", pass.Deleted)
	}
	left, err := c.Dump(nil)
	if err != nil {
		t.Fatal(err)
	}
	zones := map[uint16]bool{}
	for _, f := range left {
		if f.TupleOrig.IP.SourceAddress == client.Addr() {
			zones[f.Zone] = true
		}
	}
	if len(zones) != 2 || !zones[0] || !zones[4] {
		t.Errorf("left are flows in zones %v, want 0 and 4", zones)
	}
}
