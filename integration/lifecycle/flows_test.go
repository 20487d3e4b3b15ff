package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
)

// TestSocketThatStaysOpenFollowsTheEndpoints: the daemon deletes the flow that
// the kernel would otherwise keep to an endpoint that is gone.
func TestSocketThatStaysOpenFollowsTheEndpoints(t *testing.T) {
	r := newRig(t)
	service := other(r.Pods[1])
	r.put(t, "other.yaml", objects.Documents(t, service))
	d := r.start(t)
	d.Synchronised(t)
	socket, first := r.Pods[0].Connect("udp", service.ClusterIP(), lab.DialOptions{})
	if first.Kind != lab.Answered || first.By != "pod-2" {
		t.Fatalf("at first: %s", first)
	}
	defer socket.Close()
	for _, next := range []*lab.Place{r.Pods[2], r.Pods[1]} {
		r.put(t, "other.yaml", objects.Documents(t, other(next)))
		d.Synchronised(t)
		begin := time.Now()
		for got := socket.Ask(100 * time.Millisecond); got.By != next.Name; got = socket.Ask(100 * time.Millisecond) {
			if time.Since(begin) > time.Second {
				t.Fatalf("a second after the rules: %s, want %s", got, next.Name)
			}
		}
		t.Logf("%s answers %v after the rules", next.Name, time.Since(begin))
	}
	for _, line := range []string{
		`nlproxy_conntrack_flows_deleted_total{reason="endpoint_gone"} 2`,
		"nlproxy_services_aside 0",
		"nlproxy_transactions_total 3",
	} {
		r.awaitMetric(t, line)
	}
}

// awaitMetric waits until the daemon's metrics have a line: a pass through the
// flows is counted when it is over, which is after its first deletion.
func (r *rig) awaitMetric(t *testing.T, line string) {
	t.Helper()
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	for deadline := time.Now().Add(10 * time.Second); ; <-ticks.C {
		text := labtest.Get(t, r.Self.Namespace, "http://127.0.0.1:10249/metrics").Body
		if strings.Contains(text, line+"\n") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("metrics lack %q:\n%s", line, text)
		}
	}
}
