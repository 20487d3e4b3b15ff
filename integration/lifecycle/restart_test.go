package lifecycle

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
)

func TestNothingIsLostWhenTheDaemonIsKilledAndStartedAgain(t *testing.T) {
	r := newRig(t)
	web := r.balanced()
	r.put(t, "web.yaml", objects.Documents(t, web))
	d := r.start(t)
	d.Synchronised(t)
	generation := daemon.Generation(t, r.Self.Namespace)
	flows := slices.Concat(
		labtest.Open(t, r.Pods[0], "tcp", web.ClusterIP(), 20),
		labtest.Open(t, r.Outside, "tcp", web.NodePort(r.Self.IPv4()), 20),
		labtest.Open(t, r.Pods[0], "udp", web.ClusterIP(), 100))
	probing := r.probe(web)
	var starts []time.Duration
	for range 20 {
		probing.Pass(t, 20)
		d.Kill()
		probing.Pass(t, 20)
		begin := time.Now()
		d = r.start(t)
		if first := d.Synchronised(t); first.Operations != 0 || first.Transactions != 0 || !first.Full {
			t.Errorf("a start with nothing changed: %s", first.Line)
		}
		starts = append(starts, time.Since(begin))
		flows.Ask(t)
	}
	probing.Pass(t, 20)
	d.Stop(t)
	probing.Pass(t, 100)
	flows.Ask(t)
	if now := daemon.Generation(t, r.Self.Namespace); now != generation {
		t.Errorf("generation %d, before the restarts %d", now, generation)
	}
	slices.Sort(starts)
	t.Logf("%d starts and ends: %d probes and %d connections; from start to synchronised %s, %s at most",
		len(starts), probing.Stop(t), len(flows), starts[len(starts)/2], starts[len(starts)-1])
}

// TestStartWithNothingChangedLeavesCountersAlone is without traffic while the
// daemon is away, so that every counter must stay.
func TestStartWithNothingChangedLeavesCountersAlone(t *testing.T) {
	r := newRig(t)
	web := r.balanced()
	r.put(t, "web.yaml", objects.Documents(t, web))
	d := r.start(t)
	d.Synchronised(t)
	tally := r.Outside.Spread("tcp", web.NodePort(r.Self.IPv4()), 30, lab.DialOptions{})
	if tally.Answered() != 30 {
		t.Fatal(tally)
	}
	before := r.settled(t)
	if !strings.Contains(before, "counter packets 30 ") {
		t.Errorf("30 connections were not counted:\n%s", before)
	}
	d.Stop(t)
	r.unchanged(t, before, "stopped")
	d = r.start(t)
	first := d.Synchronised(t)
	r.unchanged(t, before, "started again")
	t.Logf("%d bytes of rules with counters are the same; %s", len(before), first.Line)
}

// unchanged fails t if rules or counters are others than before.
func (r *rig) unchanged(t *testing.T, before, when string) {
	t.Helper()
	if diff := cmp.Diff(before, r.counted(t)); diff != "" {
		t.Errorf("rules (-before +%s):\n%s", when, diff)
	}
}

// counted is all rules of IPv4 with their counters. Those of IPv6 count what
// the kernel itself sends now and then to find neighbours.
func (r *rig) counted(t *testing.T) string {
	t.Helper()
	return labtest.Run(t, r.Self.Namespace, "", "nft", "-a", "list", "ruleset", "ip")
}

// settled waits until the last packets of connections that were closed are
// counted.
func (r *rig) settled(t *testing.T) string {
	t.Helper()
	last := r.counted(t)
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		now := r.counted(t)
		if now == last {
			return now
		}
		last = now
	}
	t.Fatal("rules count packets though nobody sends any")
	return ""
}
