package traffic

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/integration/lab"
)

// foreignRules are what others have in the tables that we use, with counts that
// no packet of the lab changes.
const foreignRules = `*%[1]s
:FOREIGN - [0:0]
:KUBE-KUBELET-CANARY - [0:0]
[3:300] -A %[2]s -s %[3]s -m comment --comment "before" -j FOREIGN
[5:500] -A %[2]s -s %[3]s -p tcp -m tcp --dport 80 -j ACCEPT
[7:700] -A FOREIGN -m mark --mark 0x10 -j RETURN
COMMIT
`

// foreignTable is another table with a base chain at the same hook.
const foreignTable = `table inet foreign {
	set hosts { type ipv4_addr; elements = { 192.0.2.1, 192.0.2.2 }; }
	chain out { type nat hook postrouting priority 100; ip saddr @hosts counter packets 11 bytes 1100 masquerade; }
}
# ip6tables-nft 1.8.9 leaves out counts.
add rule ip6 nat PREROUTING ip6 saddr 2001:db8:99::99 counter packets 13 bytes 1300 return
add rule ip6 filter FORWARD ip6 saddr 2001:db8:99::99 counter packets 17 bytes 1700 drop
`

// family is the tools for one, an address in it that nobody has, and what the
// tools make of [13:1300].
type family struct{ save, restore, nobody, count string }

func families() []family {
	return []family{
		{"iptables-nft-save", "iptables-nft-restore", "192.0.2.99", "13:1300"},
		{"ip6tables-nft-save", "ip6tables-nft-restore", "2001:db8:99::99", "0:0"},
	}
}

// foreign is the whole ruleset, counters included, without what is ours.
func (p *proxy) foreign(t testing.TB) string {
	t.Helper()
	ours := regexp.MustCompile(`^(#|:KUBE-|.* KUBE-)|^$`)
	kubelet := regexp.MustCompile(`KUBE-KUBELET-CANARY`)
	var kept strings.Builder
	for _, f := range families() {
		for line := range strings.Lines(p.run(t, "", f.save, "-c")) {
			if kubelet.MatchString(line) || !ours.MatchString(line) {
				kept.WriteString(line)
			}
		}
	}
	kept.WriteString(p.run(t, "", "nft", "list", "table", "inet", "foreign"))
	return kept.String()
}

// addForeign makes what others have.
func (p *proxy) addForeign(t testing.TB) {
	t.Helper()
	for _, f := range families() {
		for table, chain := range map[string]string{"nat": "PREROUTING", "filter": "FORWARD", "mangle": "OUTPUT"} {
			p.run(t, fmt.Sprintf(foreignRules, table, chain, f.nobody), f.restore, "--noflush", "--counters")
		}
	}
	p.run(t, foreignTable, "nft", "-f", "-")
}

func TestRulesOfOthersStayAsTheyAre(t *testing.T) {
	t.Parallel()
	s := service{name: "web", number: 1, kind: "LoadBalancer", spec: sticky(100), endpoints: at("pod-1")}
	p := newProxy(t, settings())
	p.addForeign(t)
	before := p.foreign(t)
	for _, counter := range []string{"[7:700]", "packets 11 bytes 1100", "[13:1300]", "[17:1700]"} {
		if !strings.Contains(before, counter) {
			t.Fatalf("counter %s is missing:\n%s", counter, before)
		}
	}
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"sync", func() { p.set(t, s) }},
		{"traffic", func() {
			p.check(t, []row{{from: "outside", to: s, by: ingress, want: masqueraded("pod-1")}})
		}},
		{"change", func() { p.set(t, s.with(at("pod-1", "pod-2")...), service{name: "more", number: 2}) }},
		{"restart", func() { p.start(t); p.set(t, s) }},
		{"no services", func() { p.set(t) }},
		{"cleanup", func() { p.set(t, s); p.cleanUp(t) }},
		{"second cleanup", func() { p.cleanUp(t) }},
	} {
		step.do()
		if diff := cmp.Diff(before, p.foreign(t)); diff != "" {
			t.Errorf("after %s (-before +now):\n%s", step.name, diff)
		}
	}
}

func TestCleanupRemovesAllThatIsOurs(t *testing.T) {
	t.Parallel()
	p := newProxy(t, settings())
	p.addForeign(t)
	for _, f := range families() {
		for _, table := range []string{"nat", "filter", "mangle"} {
			p.run(t, fmt.Sprintf("*%s\n:KUBE-PROXY-CANARY - [0:0]\nCOMMIT\n", table), f.restore, "--noflush")
		}
		p.run(t, fmt.Sprintf("*filter\n:KUBE-FIREWALL - [0:0]\n[13:1300] -A KUBE-FIREWALL -s %s -j DROP\nCOMMIT\n", f.nobody),
			f.restore, "--noflush", "--counters")
	}
	s := service{name: "web", number: 1, kind: "LoadBalancer", endpoints: at("pod-1")}
	p.set(t, s, service{name: "empty", number: 2, kind: "NodePort"})
	p.cleanUp(t)
	shared := regexp.MustCompile(`KUBE-(FIREWALL|KUBELET-CANARY)`)
	for _, f := range families() {
		saved := p.run(t, "", f.save, "-c")
		for line := range strings.Lines(saved) {
			if strings.Contains(line, "KUBE-") && !shared.MatchString(line) {
				t.Errorf("%s: left: %s", f.save, line)
			}
		}
		for _, stays := range []string{":KUBE-FIREWALL ", "[" + f.count + "] -A KUBE-FIREWALL -s " + f.nobody, ":KUBE-KUBELET-CANARY "} {
			if !strings.Contains(saved, stays) {
				t.Errorf("%s: %q is gone:\n%s", f.save, stays, saved)
			}
		}
	}
	p.check(t, []row{{from: client, to: s, by: clusterIP, want: untouched()}})
	// And all of it comes back.
	p.start(t)
	p.set(t, s)
	p.check(t, []row{{from: client, to: s, by: clusterIP, want: kept("pod-1")}})
}

// TestFlushedRulesetIsRepaired takes everything away behind the Dataplane's
// back, and has it look again with nothing changed.
func TestFlushedRulesetIsRepaired(t *testing.T) {
	t.Parallel()
	s := service{name: "web", number: 1, kind: "NodePort", endpoints: at("pod-1")}
	p := newProxy(t, settings())
	rows := []row{
		{from: client, to: s, by: clusterIP, want: kept("pod-1")},
		{from: "outside", to: s, by: nodePort, want: masqueraded("pod-1")},
	}
	p.set(t, s)
	p.check(t, rows)
	p.run(t, "", "nft", "flush", "ruleset")
	p.check(t, []row{{from: client, to: s, by: clusterIP, want: untouched()}})
	p.set(t, s)
	if !p.report.Full || p.report.Operations == 0 {
		t.Errorf("not noticed: %+v", p.report)
	}
	p.check(t, rows)
	p.set(t, s)
	if p.report.Full || p.report.Operations != 0 {
		t.Errorf("written once more: %+v", p.report)
	}
}

// TestDeletedChainIsRepairedWhenItsServiceChanges removes one chain and the
// rules that lead to it.
func TestDeletedChainIsRepairedWhenItsServiceChanges(t *testing.T) {
	t.Parallel()
	s := service{name: "web", number: 1, endpoints: at("pod-1")}
	other := service{name: "other", number: 2, endpoints: at("pod-2")}
	p := newProxy(t, settings())
	p.set(t, s, other)
	chain := p.spreading(t, model.IPv4, "default/web:tcp")[0].ID.Name
	handle := regexp.MustCompile(`jump ` + chain + ` # handle (\d+)`).FindStringSubmatch(
		p.run(t, "", "nft", "-a", "list", "chain", "ip", "nat", "KUBE-SERVICES"))
	if handle == nil {
		t.Fatalf("no rule jumps to %s", chain)
	}
	p.run(t, fmt.Sprintf("delete rule ip nat KUBE-SERVICES handle %s; flush chain ip nat %[2]s; delete chain ip nat %[2]s",
		handle[1], chain), "nft", "-f", "-")
	if got := p.reach(p.place(t, client), "tcp", clusterIP(s, false), lab.DialOptions{Timeout: silence}); got.By != "" {
		t.Fatalf("without its chain: %s", got)
	}
	s = s.with(at("pod-2", "remote-1")...)
	p.set(t, s, other)
	p.check(t, []row{
		{from: client, to: s, by: clusterIP, want: kept("pod-2", "remote-1")},
		{from: client, to: other, by: clusterIP, want: kept("pod-2")},
	})
}
