package traffic

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/watch"
)

// One service here has so many endpoints that its transaction needs a buffer
// that only root gets.
func TestMain(m *testing.M) { labtest.MainAsRoot(m) }

// settings are what a cluster usually has.
func settings() plan.Options {
	return plan.Options{
		MasqueradeBit: 14,
		Detect: plan.Detect{
			Mode:         plan.DetectClusterCIDR,
			ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:244::/32")},
		},
		NodePorts:   plan.NodePorts{Localhost: true},
		DropInvalid: true,
		Counters:    plan.Counters{InvalidDropped: true, LocalhostNodePorts: true},
	}
}

// A proxy is a node of the lab, servers at every pod, and a Dataplane that is
// fed with manifests.
type proxy struct {
	*lab.Node
	// options are those of the Dataplane from the next start on; a Writer that
	// is not set is the kernel.
	options dataplane.Options
	data    *dataplane.Dataplane
	conn    *kernel.Conn
	// local are the node's own addresses from the next sync on.
	local []netip.Addr
	// report is that of the last sync, and problems what was wrong with its
	// manifests.
	report   dataplane.Report
	problems []watch.Problem

	services *model.Services // nil before the first sync
	sent     atomic.Uint32   // attempts so far
}

func newProxy(t *testing.T, o plan.Options) *proxy {
	t.Helper()
	return newLargeProxy(t, lab.Options{Pods: 3}, o)
}

func newLargeProxy(t *testing.T, size lab.Options, o plan.Options) *proxy {
	t.Helper()
	p := bareProxy(t, size, o)
	for _, place := range slices.Concat(p.Pods, p.Remote) {
		for _, n := range networks() {
			labtest.Serve(t, place, n, targetPort)
		}
	}
	return p
}

// bareProxy is a proxy without servers.
func bareProxy(t testing.TB, size lab.Options, o plan.Options) *proxy {
	t.Helper()
	size.Namespace = labtest.Namespace(t)
	p := &proxy{Node: labtest.Node(t, size), options: dataplane.Options{Plan: o}}
	for _, a := range []string{"127.0.0.1", "192.168.7.1", "192.168.8.1", "10.244.1.1", "::1", "fd00:7::1", "fd00:244:1::1"} {
		p.local = append(p.local, netip.MustParseAddr(a))
	}
	p.dial(t)
	p.start(t)
	return p
}

// dial opens a connection to the node's kernel, and makes its counters.
func (p *proxy) dial(t testing.TB) {
	t.Helper()
	err := p.Self.Namespace.Do(func() (err error) {
		if p.conn, err = kernel.Dial(kernel.Options{}); err != nil {
			return err
		}
		_, err = p.conn.EnsureCounters([]string{iptables.InvalidDropped, iptables.LocalhostNodePorts})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.conn.Close() })
}

// start makes a Dataplane that knows nothing, as at a start of the daemon.
func (p *proxy) start(t testing.TB) {
	t.Helper()
	o := p.options
	o.Reader = p.conn
	if o.Writer == nil {
		o.Writer = p.conn
	}
	o.Observer = func(r dataplane.Report) { p.report = r }
	o.RouteLocalnet = func() error { return p.write("net/ipv4/conf/all/route_localnet", "1") }
	data, err := dataplane.New(o)
	if err != nil {
		t.Fatal(err)
	}
	p.data, p.services = data, nil
}

// write sets a sysctl of the node.
func (p *proxy) write(sysctl, value string) error {
	return p.Self.Namespace.Do(func() error { return os.WriteFile("/proc/sys/"+sysctl, []byte(value), 0) })
}

// set makes services all there is. Nothing may be wrong with them.
func (p *proxy) set(t testing.TB, services ...service) {
	t.Helper()
	if err := p.sync(t, manifests(services...)); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range p.problems {
		t.Fatal(wrong)
	}
	for _, aside := range p.report.Aside {
		t.Fatalf("%s is set aside: %v", aside.Service, aside.Err)
	}
}

// sync makes what manifests say all there is.
func (p *proxy) sync(t testing.TB, manifests string) error {
	t.Helper()
	s, problems, err := watch.Read("objects.yaml", strings.NewReader(manifests), watch.Options{NodeName: "node1"})
	if err != nil {
		t.Fatal(err)
	}
	return p.apply(t, s, problems)
}

// apply makes s all there is.
func (p *proxy) apply(t testing.TB, s model.Snapshot, problems []watch.Problem) error {
	t.Helper()
	s.Node.Local = p.local
	s.Changed = nil
	if p.services != nil {
		s.Changed = changed(*p.services, s.Services)
	}
	p.services, p.problems = &s.Services, problems
	return p.data.Set(t.Context(), s)
}

// changed are the services that differ.
func changed(before, now model.Services) map[model.Name]struct{} {
	names := map[model.Name]struct{}{}
	for _, all := range []model.Services{before, now} {
		for s := range all.All() {
			if !before.Get(s.Name).Equal(now.Get(s.Name)) {
				names[s.Name] = struct{}{}
			}
		}
	}
	return names
}

// own gives the node a link with addresses.
func (p *proxy) own(t *testing.T, link string, addresses ...netip.Addr) {
	t.Helper()
	var prefixes []netip.Prefix
	for _, a := range addresses {
		prefixes = append(prefixes, netip.PrefixFrom(a, a.BitLen()))
	}
	if err := p.Self.Namespace.AddLink(link, prefixes...); err != nil {
		t.Fatal(err)
	}
}

// run runs a program in the node's namespace.
func (p *proxy) run(t testing.TB, input, program string, args ...string) string {
	t.Helper()
	return labtest.Run(t, p.Self.Namespace, input, program, args...)
}

// place is the one of that name.
func (p *proxy) place(t testing.TB, name string) *lab.Place {
	t.Helper()
	for _, place := range p.Places() {
		if place.Name == name {
			return place
		}
	}
	t.Fatalf("there is no place %s", name)
	return nil
}

// deadline bounds what happens soon, but not at once.
const deadline = 10 * time.Second
