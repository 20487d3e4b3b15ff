package apiserver

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/objects"
)

// many are n services with five endpoints each, where nobody listens.
func many(n int) []objects.Service {
	var all []objects.Service
	for i := range n {
		s := objects.Service{Name: fmt.Sprintf("many-%d", i), Number: 100 + i, Protocols: onlyTCP}
		for e := range 5 {
			address := netip.AddrFrom4([4]byte{10, 244, byte(50 + 50*(e%4) + i/250), byte(1 + (i+e)%250)})
			s.Endpoints = append(s.Endpoints, objects.Endpoint{Address: address, Node: objects.Elsewhere})
		}
		all = append(all, s)
	}
	return all
}

var onlyTCP = []corev1.Protocol{corev1.ProtocolTCP}

// TestChangeReachesPacketsAtOnce moves a service among a thousand from five
// endpoints here to five elsewhere and back, and takes the time from just
// before the request to the API server until a connection is answered by one of
// the new endpoints. There is a connection in each millisecond, and all have to
// be answered.
func TestChangeReachesPacketsAtOnce(t *testing.T) {
	const changes = 20
	r := newRig(t)
	web := at("web", 1, r.Pods[1:6]...)
	web.Protocols = onlyTCP
	r.started(t, append(many(999), web)...)
	sides := [][]objects.Endpoint{objects.At(r.Remote[:5]...), web.Endpoints}
	var took []time.Duration
	for i := range changes {
		arrival := r.arrival(t, web, i%2 == 0)
		web.Endpoints = sides[i%2]
		begin := time.Now()
		r.updateSlice(t, web)
		took = append(took, arrival().Sub(begin))
	}
	slices.Sort(took)
	median, limit := took[changes/2], 50*time.Millisecond+minSyncPeriod
	t.Logf("1,000 services of 5 endpoints, %d changes: from the request to the first packet on the new path %s, %s at most",
		changes, median, took[changes-1])
	if median > limit {
		t.Errorf("median %s, want at most %s: %v", median, limit, took)
	}
}

// arrival connects to s from now on, and returns a function that waits until
// an endpoint of the other side has answered and returns when that was.
func (r *rig) arrival(t *testing.T, s objects.Service, elsewhere bool) (at func() time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	arrived := make(chan time.Time, 1)
	go func() {
		defer cancel()
		defer close(arrived)
		ticks := time.NewTicker(time.Millisecond)
		defer ticks.Stop()
		for ; ctx.Err() == nil; <-ticks.C {
			got := r.Pods[0].Dial("tcp", s.ClusterIP(), lab.DialOptions{})
			switch {
			case got.Kind != lab.Answered:
				t.Errorf("while endpoints change: %s", got)
				return
			case strings.HasPrefix(got.By, "remote") == elsewhere:
				arrived <- time.Now()
				return
			}
		}
	}()
	return func() time.Time {
		when, ok := <-arrived
		if !ok {
			t.Fatal("no connection has taken the new path")
		}
		return when
	}
}

// TestManyChangesTakeFewTransactions makes 200 changes in a second.
func TestManyChangesTakeFewTransactions(t *testing.T) {
	const changes, period, burst = 200, 100 * time.Millisecond, 2
	r := newRig(t)
	web := at("web", 1, r.Pods[1])
	r.create(t, web)
	o := r.options(t)
	o.Config = daemon.Configuration(period)
	d := daemon.Start(t, o)
	d.Synchronised(t)
	before := daemon.Generation(t, r.Self.Namespace)
	begin := time.Now()
	r.spread(t, web, changes, time.Second)
	took := time.Since(begin)
	r.becomes(t, web, "remote-1")
	transactions := int(daemon.Generation(t, r.Self.Namespace) - before)
	logged := 0
	for _, e := range d.Entries() {
		if daemon.IsReport(e) {
			logged += e.Transactions
		}
	}
	// The last may come once the changes are over.
	limit := int(took/period) + burst + 1
	t.Logf("%d changes in %s: %d transactions, want %d at most", changes, took, transactions, limit)
	if transactions > limit || transactions < 2 {
		t.Errorf("%d transactions, %d in the log with those of the start; want 2 to %d", transactions, logged, limit)
	}
}

// spread moves s to n places in the given time, the last of which is remote-1.
func (r *rig) spread(t *testing.T, s objects.Service, n int, over time.Duration) {
	t.Helper()
	ticks := time.NewTicker(over / time.Duration(n))
	defer ticks.Stop()
	for i := range n {
		address := netip.AddrFrom4([4]byte{10, 244, 9, byte(1 + i)})
		s.Endpoints = []objects.Endpoint{{Address: address, Node: objects.Elsewhere}}
		if i == n-1 {
			s.Endpoints = objects.At(r.Remote[0])
		}
		r.updateSlice(t, s)
		<-ticks.C
	}
}
