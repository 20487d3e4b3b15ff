package takeover

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nlproxy/nlproxy/integration/golden"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
)

// A path is a way to reach a service.
type path struct {
	from    *lab.Place
	network string
	to      netip.AddrPort
}

// paths are ways to reach the services of each kind from this number on,
// a multiple of four.
func (r *rig) paths(number int) []path {
	pod, node := r.Pods[2], r.Self
	plain, ports, balancer := r.service(number+clusterIP), r.service(number+nodePort), r.service(number+balanced)
	return []path{
		{pod, "tcp", plain.ClusterIP()}, {pod, "tcp", plain.ClusterIPv6()},
		{pod, "udp", plain.ClusterIP()}, {pod, "udp", plain.ClusterIPv6()},
		{node, "tcp", plain.ClusterIP()}, {node, "udp", plain.ClusterIPv6()},
		{r.Outside, "tcp", ports.NodePort(node.IPv4())}, {r.Outside, "udp", ports.NodePort(node.IPv6())},
		{r.Outside, "udp", balancer.Balancer()}, {r.Outside, "tcp", balancer.BalancerIPv6()},
	}
}

// A state is what must be the same whoever programs the node. Rules are those
// that kube-proxy writes, if nlproxy writes the same, and ruleset all there are.
type state struct {
	rules, ruleset, foreign string
	flows                   labtest.Flows
	pins                    []pin
}

// state takes everything down, and opens flows.
func (r *rig) state(t *testing.T) state {
	t.Helper()
	s := state{ruleset: r.ruleset(t), foreign: r.foreign(t)}
	if r.kind.mode == "iptables" {
		s.rules = r.rules(t)
	}
	for _, one := range r.paths(12) {
		s.flows = append(s.flows, labtest.Open(t, one.from, one.network, one.to, 10)...)
	}
	if r.kind.keepsPins {
		s.pins = r.pins(t)
	}
	return s
}

// check fails t unless flows and pins are as they were, and so is what others own.
func (s state) check(t *testing.T, r *rig) {
	t.Helper()
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

// rules are those of services, as iptables-save prints them: of the legacy
// tables, if there are any there.
func (r *rig) rules(t *testing.T) string {
	t.Helper()
	if legacy := r.run(t, "", "iptables-legacy-save"); strings.Contains(legacy, ":KUBE-SERVICES") {
		return golden.Normalise(legacy, r.run(t, "", "ip6tables-legacy-save"))
	}
	return golden.Read(t, r.Self.Namespace)
}

// difference is which lines differ, the first of them; empty if texts are equal.
func difference(before, after string) string {
	const shown = 20
	if before == after {
		return ""
	}
	all := []string{"lines that are gone or new; none if it is their order that differs:"}
	old, now := lines(before), lines(after)
	for line := range old {
		if !now[line] {
			all = append(all, "- "+line)
		}
	}
	for line := range now {
		if !old[line] {
			all = append(all, "+ "+line)
		}
	}
	slices.SortFunc(all[1:], func(a, b string) int { return strings.Compare(a[2:], b[2:]) })
	return strings.Join(all[:min(len(all), shown)], "\n")
}

func lines(text string) map[string]bool {
	set := map[string]bool{}
	for line := range strings.SplitSeq(text, "\n") {
		set[line] = true
	}
	return set
}

// counters are what the numbers of packets look like.
var counters = regexp.MustCompile(` ?\[\d+:\d+\]`)

// ruleset is all that is in nf_tables and in the legacy tables, without
// counters and what is in sets: lines, each after the table and the chain that
// it is in, sorted.
func (r *rig) ruleset(t *testing.T) string {
	t.Helper()
	all := slices.Concat(
		placed("", r.run(t, "", "nft", "-s", "-t", "list", "ruleset")),
		placed("legacy ip ", r.run(t, "", "iptables-legacy-save")),
		placed("legacy ip6 ", r.run(t, "", "ip6tables-legacy-save")))
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// placed are the lines that nft or iptables-save printed, each after the lines
// that say where it is.
func placed(kind, printed string) (all []string) {
	var table, chain string
	for line := range strings.Lines(printed) {
		line = strings.TrimSpace(counters.ReplaceAllString(line, ""))
		switch {
		case line == "" || line == "}" || line == "COMMIT" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "table "), strings.HasPrefix(line, "*"):
			table, chain = line, ""
			all = append(all, kind+table)
		case strings.HasSuffix(line, "{"):
			chain = line
			all = append(all, kind+table+chain)
		default:
			all = append(all, kind+table+chain+line)
		}
	}
	return all
}

// stays matches what cleanup leaves in nf_tables, and leaves on purpose: base
// chains without a rule, as every command of iptables does, and KUBE-FIREWALL,
// which the kubelet uses too and which guards what
// net.ipv4.conf.all.route_localnet opens.
var stays = regexp.MustCompile(`^table ip6? (nat|filter) \{` +
	`(chain (PREROUTING|INPUT|FORWARD|OUTPUT|POSTROUTING) \{(type (nat|filter) hook .* policy accept;|counter jump KUBE-FIREWALL)?|chain KUBE-FIREWALL \{.*)?$`)

// withoutWhatStays is a ruleset without those lines.
func withoutWhatStays(ruleset string) string {
	lines := strings.Split(ruleset, "\n")
	return strings.Join(slices.DeleteFunc(lines, stays.MatchString), "\n")
}

// leftovers are what kube-proxy has left besides the chains that nlproxy takes
// over: its canaries, all that is in the legacy tables but KUBE-FIREWALL, which
// the kubelet uses too, and the tables of nftables mode.
func (r *rig) leftovers(t *testing.T) (found []string) {
	t.Helper()
	for program, mark := range map[string]string{
		"iptables-nft-save": canary, "ip6tables-nft-save": canary,
		"iptables-legacy-save": "KUBE-", "ip6tables-legacy-save": "KUBE-",
		"nft": "kube-proxy",
	} {
		args := map[string][]string{"nft": {"list", "tables"}}[program]
		for line := range strings.Lines(r.run(t, "", program, args...)) {
			if strings.Contains(strings.ReplaceAll(line, firewall, ""), mark) {
				found = append(found, program+": "+line)
			}
		}
	}
	return found
}

// canary is a chain by which kube-proxy notices that rules were flushed.
const canary = "KUBE-PROXY-CANARY"

// awaitNoLeftovers waits until nlproxy has removed what kube-proxy has left.
func (r *rig) awaitNoLeftovers(t *testing.T) {
	t.Helper()
	ticks := time.NewTicker(2 * time.Second) // to print all rules takes long
	defer ticks.Stop()
	deadline := time.Now().Add(patience)
	for found := r.leftovers(t); len(found) > 0; found = r.leftovers(t) {
		if time.Now().After(deadline) {
			t.Fatalf("leftovers of %s after %s:\n%s", r.kind.backend, patience, strings.Join(found[:min(len(found), 5)], ""))
		}
		<-ticks.C
	}
}

// patience is how long it may take until leftovers are gone: kube-proxy may
// have written some once more when nlproxy had removed them, which looks again
// after a syncPeriod of 30 seconds.
const patience = 90 * time.Second

// A pin is a client of a service with affinity, and who answered it.
type pin struct {
	from *lab.Place
	to   objects.Service
	by   string
}

// pins connects three clients to every sticky service.
func (r *rig) pins(t *testing.T) (all []pin) {
	t.Helper()
	clients := []*lab.Place{r.Outside, r.Pods[1], r.Pods[2]}
	for _, s := range r.services {
		if !s.Affinity {
			continue
		}
		for _, from := range clients {
			got := from.Dial("tcp", s.ClusterIP(), lab.DialOptions{})
			if got.Kind != lab.Answered {
				t.Fatalf("%s to %s: %s", from, s.Name, got)
			}
			all = append(all, pin{from, s, got.By})
		}
	}
	return all
}
