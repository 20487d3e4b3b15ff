package takeover

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nlproxy/nlproxy/integration/cluster"
	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

// A kind is a way in which kube-proxy programs the kernel.
type kind struct {
	backend cluster.Backend
	mode    string
	// back is the backend of the kube-proxy that takes over from nlproxy.
	back cluster.Backend
	// keepsPins says that clients stay with their endpoints.
	keepsPins bool
}

var kinds = []kind{
	{cluster.IPTablesNFT, "iptables", cluster.IPTablesNFT, true},
	{cluster.IPTablesLegacy, "iptables", cluster.IPTablesLegacy, true},
	// In this mode kube-proxy begins by removing all KUBE-* chains, long before
	// it has any rules of its own, if it finds a program called iptables.
	{cluster.NFTables, "nftables", cluster.OnlyNFTables, false},
}

// cleansUp reports whether cleanup has something to remove on the way back. On
// iptables-nft, kube-proxy has the very chains that nlproxy had.
func (k kind) cleansUp() bool { return k.backend != cluster.IPTablesNFT }

func TestNodeGoesFromKubeProxyToNlproxyAndBack(t *testing.T) {
	for _, k := range kinds {
		t.Run(string(k.backend), func(t *testing.T) {
			r := newRig(t, k)
			proxy := r.startKubeProxy(t, k.backend)
			s := r.state(t)
			probing := r.probe()
			probing.Pass(t, 10)

			t.Log("kube-proxy stops, nlproxy starts")
			proxy.Kill()
			probing.Pass(t, 10)
			d := r.start(t)
			s.checkTaken(t, r, probing)

			t.Log("nlproxy stops, kube-proxy starts")
			proxy = r.goBack(t, d, probing)
			s.checkReturned(t, r, probing)

			t.Log("nlproxy starts, kube-proxy stops")
			d = r.start(t)
			probing.Pass(t, 10)
			proxy.Kill()
			s.checkTaken(t, r, probing)

			t.Log("and back again")
			r.goBack(t, d, probing)
			s.checkReturned(t, r, probing)
			t.Logf("%d probes, %d connections and %d pins", probing.Stop(t), len(s.flows), len(s.pins))
		})
	}
}

// goBack goes from nlproxy to kube-proxy as an operator does.
func (r *rig) goBack(t *testing.T, d *daemon.Daemon, probing labtest.Probes) *lab.Process {
	t.Helper()
	d.Stop(t)
	probing.Pass(t, 10)
	proxy := r.startKubeProxy(t, r.kind.back)
	probing.Pass(t, 10)
	said := r.run(t, "", daemon.Binary(t), "cleanup")
	if removed := strings.HasPrefix(said, "removed in "); removed != r.kind.cleansUp() {
		t.Errorf("cleanup: %s", said)
	}
	probing.Pass(t, 10)
	return proxy
}

// probe probes services 200 times a second, over both protocols and families.
func (r *rig) probe() (all labtest.Probes) {
	for _, one := range r.paths(8) {
		all = append(all, one.from.Probe(one.network, one.to, lab.ProbeOptions{Rate: 20}))
	}
	return all
}

// checkTaken fails t unless nlproxy alone programs the kernel, and nobody has
// noticed.
func (s state) checkTaken(t *testing.T, r *rig, probing labtest.Probes) {
	t.Helper()
	r.awaitNoLeftovers(t)
	probing.Pass(t, 10)
	s.check(t, r)
	if s.rules != "" {
		if diff := difference(s.rules, r.rules(t)); diff != "" {
			t.Errorf("rules of services (-kube-proxy's +nlproxy's):\n%s", diff)
		}
	}
}

// checkReturned fails t unless the kernel is as it was when kube-proxy had
// programmed it for the first time, and nobody has noticed.
func (s state) checkReturned(t *testing.T, r *rig, probing labtest.Probes) {
	t.Helper()
	probing.Pass(t, 10)
	s.check(t, r)
	before, after := s.ruleset, r.ruleset(t)
	if r.kind.cleansUp() {
		before, after = withoutWhatStays(before), withoutWhatStays(after)
	}
	if diff := difference(before, after); diff != "" {
		t.Errorf("all rules (-kube-proxy's +kube-proxy's after nlproxy's):\n%s", diff)
	}
}

func TestCleanupRemovesEverything(t *testing.T) {
	r := newRig(t, kinds[0])
	proxy := r.startKubeProxy(t, cluster.IPTablesNFT)
	foreign := r.foreign(t)
	proxy.Kill()
	r.start(t).Stop(t)
	r.KillAPIServer()
	t.Logf("cleanup: %s", r.run(t, "", daemon.Binary(t), "cleanup"))
	saved := r.run(t, "", "iptables-nft-save") + r.run(t, "", "ip6tables-nft-save")
	for line := range strings.Lines(saved) {
		if strings.Contains(strings.ReplaceAll(line, firewall, ""), "KUBE-") && !strings.Contains(line, stranger) {
			t.Errorf("cleanup leaves: %s", line)
		}
	}
	if !strings.Contains(saved, ":"+firewall) {
		t.Errorf("cleanup removes %s", firewall)
	}
	if diff := cmp.Diff(foreign, r.foreign(t)); diff != "" {
		t.Errorf("rules of somebody else (-before +after cleanup):\n%s", diff)
	}
}

// firewall is a chain that the kubelet uses too.
const firewall = "KUBE-FIREWALL"
