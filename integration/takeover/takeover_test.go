package takeover

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/golden"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

// canary is a chain by which kube-proxy notices that rules were flushed.
const canary = "KUBE-PROXY-CANARY"

func TestNodeGoesFromKubeProxyToNlproxyAndBack(t *testing.T) {
	r := newRig(t)
	proxy := r.startKubeProxy(t)
	s := r.state(t)
	if !strings.Contains(r.saved(t), canary) {
		t.Errorf("kube-proxy has no %s", canary)
	}
	probing := r.probe()
	probing.Pass(t, 100)

	proxy.Kill()
	probing.Pass(t, 100)
	d := r.start(t)
	first := d.Synchronised(t)
	probing.Pass(t, 100)
	s.check(t, r)
	t.Logf("nlproxy after kube-proxy: %s", first.Line)
	if strings.Contains(r.saved(t), canary) {
		t.Errorf("nlproxy leaves %s", canary)
	}

	d.Stop(t)
	probing.Pass(t, 100)
	proxy = r.startKubeProxy(t)
	probing.Pass(t, 100)
	s.check(t, r)

	proxy.Kill()
	d = r.start(t)
	d.Synchronised(t)
	probing.Pass(t, 100)
	s.check(t, r)
	d.Stop(t)
	t.Logf("%d probes, %d connections and %d pins", probing.Stop(t), len(s.flows), len(s.pins))
	r.cleanUp(t, s)
}

// cleanUp removes all rules of services, with no API server.
func (r *rig) cleanUp(t *testing.T, s state) {
	t.Helper()
	r.KillAPIServer()
	t.Logf("cleanup: %s", r.run(t, "", daemon.Binary(t), "cleanup"))
	for line := range strings.Lines(r.saved(t)) {
		if strings.Contains(strings.ReplaceAll(line, firewall, ""), "KUBE-") && !strings.Contains(line, stranger) {
			t.Errorf("cleanup leaves: %s", line)
		}
	}
	if !strings.Contains(r.saved(t), ":"+firewall) {
		t.Errorf("cleanup removes %s", firewall)
	}
	if diff := cmp.Diff(s.foreign, r.foreign(t)); diff != "" {
		t.Errorf("rules of somebody else (-before +after cleanup):\n%s", diff)
	}
}

// firewall is a chain that the kubelet uses too.
const firewall = "KUBE-FIREWALL"

// saved is the ruleset of both families.
func (r *rig) saved(t *testing.T) string {
	t.Helper()
	return r.run(t, "", "iptables-nft-save") + r.run(t, "", "ip6tables-nft-save")
}

// probe probes services 200 times a second, one of each kind.
func (r *rig) probe() labtest.Probes {
	node := r.Self.IPv4()
	return labtest.Probes{
		r.Pods[2].Probe("tcp", r.service(8+clusterIP).ClusterIP(), lab.ProbeOptions{Rate: 100}),
		r.Outside.Probe("tcp", r.service(8+nodePort).NodePort(node), lab.ProbeOptions{Rate: 50}),
		r.Outside.Probe("tcp", r.service(8+balanced).Balancer(), lab.ProbeOptions{Rate: 50}),
	}
}

// A state is what must be the same whoever programs the node.
type state struct {
	rules, foreign string
	flows          labtest.Flows
	pins           []pin
}

// state takes everything down, and opens flows.
func (r *rig) state(t *testing.T) state {
	t.Helper()
	node := r.Self.IPv4()
	return state{
		rules:   golden.Read(t, r.Self.Namespace),
		foreign: r.foreign(t),
		pins:    r.pins(t),
		flows: slices.Concat(
			labtest.Open(t, r.Pods[2], "tcp", r.service(12+clusterIP).ClusterIP(), 20),
			labtest.Open(t, r.Outside, "tcp", r.service(12+nodePort).NodePort(node), 20),
			labtest.Open(t, r.Outside, "tcp", r.service(12+balanced).Balancer(), 20),
			labtest.Open(t, r.Pods[2], "udp", r.service(12+clusterIP).ClusterIP(), 20),
			labtest.Open(t, r.Outside, "udp", r.service(12+nodePort).NodePort(node), 20)),
	}
}

// check fails t unless everything is as it was.
func (s state) check(t *testing.T, r *rig) {
	t.Helper()
	if diff := cmp.Diff(s.rules, golden.Read(t, r.Self.Namespace)); diff != "" {
		t.Errorf("rules of services (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(s.foreign, r.foreign(t)); diff != "" {
		t.Errorf("rules of somebody else (-before +after):\n%s", diff)
	}
	s.flows.Ask(t)
	for _, p := range s.pins {
		if got := p.from.Dial("tcp", p.to.ClusterIP(), lab.DialOptions{}); got.By != p.by {
			t.Errorf("%s to %s, which %s had answered: %s", p.from, p.to.Name, p.by, got)
		}
	}
}
