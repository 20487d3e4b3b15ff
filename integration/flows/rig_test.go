package flows

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/nlproxy/nlproxy/conntrack"
	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestMain(m *testing.M) { labtest.MainAsRoot(m) }

var settings = plan.Options{
	MasqueradeBit: 14,
	Detect: plan.Detect{
		Mode:         plan.DetectClusterCIDR,
		ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:244::/32")},
	},
}

var thisNode = model.Node{
	Name:      "node1",
	Addresses: addrs("192.168.7.1", "fd00:7::1"),
	Local:     addrs("10.244.1.1", "127.0.0.1", "192.168.7.1", "192.168.8.1", "::1", "fd00:244:1::1", "fd00:7::1"),
}

func addrs(texts ...string) (all []netip.Addr) {
	for _, s := range texts {
		all = append(all, netip.MustParseAddr(s))
	}
	return all
}

// proxy is a Dataplane and a Cleaner in one namespace.
type proxy struct {
	namespace *lab.Namespace
	data      *dataplane.Dataplane
	services  model.Services
	started   bool
	// passes are those of the Cleaner, which does not wait for a reader of more
	// than a few.
	passes chan conntrack.Pass
	stop   func()
}

// newProxy starts a proxy that runs until t ends.
func newProxy(t testing.TB, ns *lab.Namespace) *proxy {
	t.Helper()
	p := &proxy{namespace: ns, stop: func() {}}
	p.start(t)
	t.Cleanup(func() { p.stop() })
	return p
}

// start makes everything anew, as a daemon that starts does.
func (p *proxy) start(t testing.TB) {
	t.Helper()
	p.stop()
	var conn *kernel.Conn
	var table *conntrack.Table
	err := p.namespace.Do(func() (err error) {
		if conn, err = kernel.Dial(kernel.Options{}); err != nil {
			return err
		}
		table, err = conntrack.Dial()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	passes := make(chan conntrack.Pass, 1000)
	cleaner, err := conntrack.NewCleaner(conntrack.CleanerOptions{
		Flows: table, Observer: func(pass conntrack.Pass) { passes <- pass },
	})
	if err != nil {
		t.Fatal(err)
	}
	p.data, err = dataplane.New(dataplane.Options{Reader: conn, Writer: conn, Plan: settings, Committed: cleaner.Update})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		cleaner.Run(ctx)
		close(done)
	}()
	p.started, p.passes = false, passes
	p.stop = func() {
		cancel()
		<-done
		conn.Close()
		table.Close()
	}
}

// set gives services new states, nil for gone.
func (p *proxy) set(t testing.TB, changes map[model.Name]*model.Service) {
	t.Helper()
	p.services = p.services.With(changes)
	s := model.Snapshot{Node: thisNode, Services: p.services}
	if p.started {
		s.Changed = map[model.Name]struct{}{}
		for n := range changes {
			s.Changed[n] = struct{}{}
		}
	}
	p.started = true
	if err := p.data.Set(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

func (p *proxy) put(t testing.TB, svc *model.Service) {
	t.Helper()
	p.set(t, map[model.Name]*model.Service{svc.Name: svc})
}

// pass is the next pass, which has to succeed.
func (p *proxy) pass(t testing.TB) conntrack.Pass {
	t.Helper()
	select {
	case pass := <-p.passes:
		if pass.Err != nil {
			t.Fatal(pass.Err)
		}
		return pass
	case <-time.After(30 * time.Second):
		t.Fatal("no pass in 30 seconds")
		return conntrack.Pass{}
	}
}

// port and target are the ports of every service here.
const port, target = 80, 8080

var udp = model.PortKey{Port: "udp", Protocol: model.UDP}

// service has all kinds of frontends in both families, and its endpoints at
// places of a node.
func service(places ...*lab.Place) *model.Service {
	svc := &model.Service{
		Name:            model.Name{Namespace: "default", Name: "echo"},
		Ports:           []model.Port{{PortKey: udp, Number: port, NodePort: 30001}},
		ClusterIPs:      addrs("10.96.0.1", "fd00:96::1"),
		ExternalIPs:     addrs("198.51.100.1", "2001:db8:e::1"),
		LoadBalancerIPs: addrs("203.0.113.1", "2001:db8:1::1"),
		Endpoints:       map[model.PortKey][]model.Endpoint{},
	}
	for _, p := range places {
		for _, a := range p.Addresses {
			svc.Endpoints[udp] = append(svc.Endpoints[udp], model.Endpoint{
				Addr: netip.AddrPortFrom(a, target), Ready: true, Serving: true, Node: "node2",
			})
		}
	}
	return svc
}

// node is a node with a server at each pod, but the last, which is a client.
func node(t testing.TB) *lab.Node {
	t.Helper()
	n := labtest.Node(t, lab.Options{Namespace: labtest.Namespace(t), Pods: 3})
	for _, p := range append(n.Remote, n.Pods[:2]...) {
		labtest.Serve(t, p, "udp", target)
	}
	return n
}
