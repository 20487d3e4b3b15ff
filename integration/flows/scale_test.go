package flows

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nlproxy/nlproxy/conntrack"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

// room skips b unless the node's limit, which other namespaces cannot raise,
// allows so many flows.
func room(b *testing.B, flows int) {
	b.Helper()
	if testing.Short() {
		b.Skip("takes many seconds to make the flows")
	}
	text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_max")
	if err != nil {
		labtest.Missing(b, "the limit of flows: %v", err)
	}
	if limit, _ := strconv.Atoi(strings.TrimSpace(string(text))); limit < flows {
		labtest.Missing(b, "room for %d flows: net.netfilter.nf_conntrack_max is %d", flows, limit)
	}
}

// numbered is a UDP service with two endpoints.
func numbered(i int, second int) *model.Service {
	ep := func(n int) model.Endpoint {
		return model.Endpoint{Addr: endpoint(n), Ready: true, Serving: true, Node: "node2"}
	}
	return &model.Service{
		Name:       model.Name{Namespace: "default", Name: fmt.Sprint("udp-", i)},
		Ports:      []model.Port{{PortKey: udp, Number: port}},
		ClusterIPs: []netip.Addr{frontend(i).Addr()},
		Endpoints:  map[model.PortKey][]model.Endpoint{udp: {ep(2 * i), ep(second)}},
	}
}

func frontend(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}), port)
}

func endpoint(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 245, byte(n >> 8), byte(n)}), target)
}

// fill makes n flows, each of another client, spread over services and answered
// by the first endpoint of each.
func fill(b *testing.B, ns *lab.Namespace, n, services int) {
	b.Helper()
	c := ctnetlink(b, ns)
	for i := range n {
		client := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 244, byte(i >> 8), byte(i)}), uint16(1024+i>>16))
		s := i % services
		if err := c.Create(made(client, frontend(s), endpoint(2*s), 0)); err != nil {
			b.Fatalf("flow %d: %v", i, err)
		}
	}
}

// heap is the memory of all objects, collected or not, in bytes.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// settled is the heap without garbage: a collection leaves what pools hold to
// the next.
func settled() uint64 {
	runtime.GC()
	runtime.GC()
	return heap()
}

// peak calls fn and returns the largest heap meanwhile.
func peak(fn func()) (most uint64) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	looks := time.NewTicker(time.Millisecond)
	defer looks.Stop()
	for {
		select {
		case <-done:
			return max(most, heap())
		case <-looks.C:
			most = max(most, heap())
		}
	}
}

// BenchmarkPass changes one endpoint of one service among 2,780 and looks
// through 200,000 flows, of which none is stale.
func BenchmarkPass(b *testing.B) {
	const flows, services = 200_000, 2_780
	room(b, flows)
	ns := labtest.Namespace(b)
	fill(b, ns, flows, services)
	all := map[model.Name]*model.Service{}
	for i := range services {
		svc := numbered(i, 2*i+1)
		all[svc.Name] = svc
	}
	s := model.Snapshot{Node: thisNode, Services: model.Services{}.With(all)}
	planner := plan.New(model.IPv4, settings)
	first := []plan.Plan{planner.Build(s)}
	before := settled()

	var table *conntrack.Table
	if err := ns.Do(func() (err error) { table, err = conntrack.Dial(); return err }); err != nil {
		b.Fatal(err)
	}
	defer table.Close()
	passes := make(chan conntrack.Pass, 1)
	cleaner, err := conntrack.NewCleaner(conntrack.CleanerOptions{Flows: table, Observer: func(p conntrack.Pass) { passes <- p }})
	if err != nil {
		b.Fatal(err)
	}
	go cleaner.Run(b.Context())
	cleaner.Update(first, thisNode)
	check := func(p conntrack.Pass) time.Duration {
		if p.Err != nil || p.Flows != flows || len(p.Deleted) != 0 {
			b.Fatalf("pass %+v", p)
		}
		return p.Duration
	}
	check(<-passes)

	var took, longest time.Duration
	var most uint64
	for round := 0; b.Loop(); round++ {
		svc := numbered(7, 10_000+round)
		s.Services = s.Services.With(map[model.Name]*model.Service{svc.Name: svc})
		s.Changed = map[model.Name]struct{}{svc.Name: {}}
		changed := []plan.Plan{planner.Build(s)}
		most = max(most, peak(func() {
			cleaner.Update(changed, thisNode)
			d := check(<-passes)
			took, longest = took+d, max(longest, d)
		}))
	}
	live := int64(settled()) - int64(before)
	b.ReportMetric(float64(took.Milliseconds())/float64(b.N), "pass-ms")
	b.ReportMetric(float64(live)/1e6, "live-MB")
	b.ReportMetric(float64(int64(most)-int64(before))/1e6, "peak-MB")
	runtime.KeepAlive(first)
	runtime.KeepAlive(all)
	if longest > time.Second || int64(most)-int64(before) > 20e6 {
		b.Errorf("a pass took %s, %d bytes more than before; want a second and 20 MB at most", longest, int64(most)-int64(before))
	}
}

// BenchmarkRulesWhileFlowsAreDeleted adds TCP services while 50,000 flows to an
// endpoint that is gone are deleted, and as many when that is over. It compares
// the medians of how long each takes.
func BenchmarkRulesWhileFlowsAreDeleted(b *testing.B) {
	const flows, services = 50_000, 100
	room(b, flows)
	ns := labtest.Namespace(b)
	p := newProxy(b, ns)
	all := map[model.Name]*model.Service{}
	for i := range services {
		svc := numbered(i, 2*i+1)
		all[svc.Name] = svc
	}
	p.set(b, all)
	p.pass(b)
	added := 0
	add := func() time.Duration {
		added++
		svc := numbered(1000+added, 0)
		svc.Ports[0].Protocol, svc.Ports[0].Port = model.TCP, "tcp"
		svc.Endpoints = map[model.PortKey][]model.Endpoint{svc.Ports[0].PortKey: svc.Endpoints[udp]}
		start := time.Now()
		p.put(b, svc)
		return time.Since(start)
	}
	// Each round adds services at a pace at which all of them meet deletions.
	addAll := func() (took []time.Duration) {
		pace := time.NewTicker(20 * time.Millisecond)
		defer pace.Stop()
		for range 15 {
			<-pace.C
			took = append(took, add())
		}
		return took
	}
	var during, alone []time.Duration
	var cleaning time.Duration
	for b.Loop() {
		p.put(b, numbered(0, 1))
		for len(p.passes) > 0 {
			<-p.passes
		}
		fill(b, ns, flows, 1)
		without := numbered(0, 1)
		without.Endpoints[udp] = without.Endpoints[udp][1:]
		p.put(b, without)
		during = append(during, addAll()...)
		if len(p.passes) > 0 {
			b.Error("the flows are gone before the rules are there, so that this shows nothing")
		}
		pass := p.pass(b)
		if pass.Deleted[conntrack.EndpointGone] != flows {
			b.Fatalf("pass %+v", pass)
		}
		cleaning += pass.Duration
		alone = append(alone, addAll()...)
	}
	slices.Sort(during)
	slices.Sort(alone)
	median := func(all []time.Duration) time.Duration { return all[len(all)/2] }
	b.ReportMetric(float64(median(during).Microseconds())/1e3, "rules-ms")
	b.ReportMetric(float64(during[len(during)-1].Microseconds())/1e3, "worst-ms")
	b.ReportMetric(float64(median(alone).Microseconds())/1e3, "rules-alone-ms")
	b.ReportMetric(float64(median(during))/float64(median(alone)), "ratio")
	b.ReportMetric(float64(cleaning.Milliseconds())/float64(b.N), "deletion-ms")
}
