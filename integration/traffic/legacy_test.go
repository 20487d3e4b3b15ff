package traffic

import (
	"slices"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/dataplane/legacy"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

// copyToLegacy has iptables-legacy write what there is in nf_tables, as a
// kube-proxy would have written it there.
func (p *proxy) copyToLegacy(t *testing.T) {
	t.Helper()
	for _, f := range []string{"iptables", "ip6tables"} {
		p.run(t, p.run(t, "", f+"-nft-save"), f+"-legacy-restore", "--wait", "30")
	}
}

// legacyRules are the rules of x_tables that name a chain of ours.
func (p *proxy) legacyRules(t *testing.T) (found []string) {
	t.Helper()
	for _, f := range []string{"iptables", "ip6tables"} {
		for line := range strings.Lines(p.run(t, "", f+"-legacy-save")) {
			if strings.Contains(line, "KUBE-") && !strings.Contains(line, "KUBE-FIREWALL") {
				found = append(found, line)
			}
		}
	}
	return found
}

// removeLegacy removes what is left in x_tables, which must be something in nat
// and filter of both families, and leaves nothing.
func (p *proxy) removeLegacy(t *testing.T) {
	t.Helper()
	var removed []legacy.Removed
	err := p.Self.Namespace.Do(func() (err error) {
		removed, err = legacy.Remove(t.Context(), legacy.Options{})
		return err
	})
	if err != nil || len(removed) != 4 {
		t.Fatalf("removed %v, %v", removed, err)
	}
	if left := p.legacyRules(t); left != nil {
		t.Errorf("left:\n%s", strings.Join(left, ""))
	}
}

// legacyRounds is how often legacy tables come and go.
const legacyRounds = 5

func TestLegacyTablesGoWithoutALostPacketOrConnection(t *testing.T) {
	t.Parallel()
	labtest.Tools(t, "iptables-legacy-restore", "ip6tables-legacy-restore")
	stale := service{name: "web", number: 1, kind: "LoadBalancer", endpoints: at("pod-1")}
	fresh := stale.with(at("remote-1")...)
	p := newProxy(t, settings())
	p.set(t, stale)
	p.copyToLegacy(t)
	p.set(t, fresh)

	// x_tables came last to the hooks, and is asked first.
	client := p.place(t, "pod-3")
	for _, v6 := range []bool{false, true} {
		labtest.Answers(t, client, "tcp", clusterIP(stale, v6), "pod-1")
	}
	flows := slices.Concat(
		labtest.Open(t, client, "tcp", clusterIP(stale, false), 5),
		labtest.Open(t, client, "udp", clusterIP(stale, true), 5),
		labtest.Open(t, p.Outside, "tcp", nodePort(stale, true), 5),
		labtest.Open(t, p.Outside, "udp", ingress(stale, false), 5),
	)
	probes := p.probe(client, stale)
	for range legacyRounds {
		probes.Pass(t, 20)
		p.removeLegacy(t)
		probes.Pass(t, 20)
		for _, v6 := range []bool{false, true} {
			labtest.Answers(t, client, "tcp", clusterIP(stale, v6), "remote-1")
		}
		flows.Ask(t)
		p.set(t, stale)
		p.copyToLegacy(t)
		p.set(t, fresh)
	}
	p.removeLegacy(t)
	flows.Ask(t)
	t.Logf("%d probes in %d rounds", probes.Stop(t), legacyRounds)
}

// probe probes every kind of frontend, 200 times a second in all: masqueraded
// and not, from the node, a pod, and outside.
func (p *proxy) probe(client *lab.Place, s service) labtest.Probes {
	rate := lab.ProbeOptions{Rate: 25}
	return labtest.Probes{
		client.Probe("tcp", clusterIP(s, false), rate), client.Probe("udp", clusterIP(s, true), rate),
		p.Self.Probe("tcp", clusterIP(s, true), rate), p.Self.Probe("udp", clusterIP(s, false), rate),
		p.Outside.Probe("tcp", nodePort(s, false), rate), p.Outside.Probe("udp", nodePort(s, true), rate),
		p.Outside.Probe("tcp", ingress(s, true), rate), p.Outside.Probe("udp", ingress(s, false), rate),
	}
}
