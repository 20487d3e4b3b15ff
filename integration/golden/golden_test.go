package golden_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nlproxy/nlproxy/integration/golden"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

func TestNormaliseGivesBackWhatTheToolsWereFed(t *testing.T) {
	for _, c := range golden.Cases(t) {
		t.Run(c.Name, func(t *testing.T) {
			ns := labtest.Namespace(t)
			accounting(t, ns)
			for _, in := range restorable(c.Want) {
				labtest.Run(t, ns, in.text, in.tool+"-nft-restore", "--noflush")
			}
			if diff := cmp.Diff(c.Want, golden.Read(t, ns)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// accounting makes the counters that kube-proxy's rules name.
func accounting(t *testing.T, ns *lab.Namespace) {
	t.Helper()
	for _, name := range []string{"ct_state_invalid_dropped_pkts", "localhost_nps_accepted_pkts"} {
		labtest.Run(t, ns, "", "nfacct", "add", name)
	}
}

// An input is what a tool is to restore without flushing.
type input struct{ tool, text string }

// restorable is a case's text as inputs, one after the other. Root of a user
// namespace may not raise a socket's buffer above the default, which holds
// some hundred rules.
func restorable(text string) []input {
	const atOnce = 200
	var inputs []input
	for section := range strings.SplitSeq(text, "# ") {
		head, body, _ := strings.Cut(section, "\n")
		tool, table, found := strings.Cut(head, " ")
		if !found {
			continue
		}
		chains, rules := split(body)
		inputs = append(inputs, input{tool, restore(table, chains)})
		for some := range slices.Chunk(rules, atOnce) {
			inputs = append(inputs, input{tool, restore(table, some)})
		}
	}
	return inputs
}

func restore(table string, lines []string) string {
	return "*" + table + "\n" + strings.Join(lines, "\n") + "\nCOMMIT\n"
}

// split parts a section's chains from its rules, which may name any of them.
func split(body string) (chains, rules []string) {
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		switch name, isChain := strings.CutPrefix(line, ":"); {
		case !isChain:
			rules = append(rules, line)
		case strings.HasPrefix(name, "KUBE-"):
			chains = append(chains, line+" - [0:0]")
		default:
			chains = append(chains, line+" ACCEPT [0:0]")
		}
	}
	return chains, rules
}

func TestNormaliseLeavesOutWhatIsNotKubeProxys(t *testing.T) {
	const save = `# Generated
*mangle
:KUBE-KUBELET-CANARY - [0:0]
COMMIT
*filter
:INPUT ACCEPT [1:2]
:KUBE-PROXY-CANARY - [0:0]
:KUBE-SERVICES - [0:0]
:other - [0:0]
-A INPUT -p tcp -j other
-A INPUT -j KUBE-SERVICES
-A KUBE-SERVICES -m comment --comment "default/kubernetes:https has no endpoints" -j REJECT
-A KUBE-SERVICES -m comment --comment "b; NOTE: this must be the last rule in this chain" -j KUBE-NODEPORTS
-A KUBE-SERVICES -m comment --comment "c" -j DROP
-A other -j RETURN
COMMIT
*nat
:KUBE-SVC-A - [0:0]
-A KUBE-SVC-A -j second
-A KUBE-SVC-A -j first
COMMIT
`
	const want = `# iptables nat
:KUBE-SVC-A
-A KUBE-SVC-A -j second
-A KUBE-SVC-A -j first
# iptables filter
:INPUT
-A INPUT -j KUBE-SERVICES
:KUBE-SERVICES
-A KUBE-SERVICES -m comment --comment "c" -j DROP
-A KUBE-SERVICES -m comment --comment "b; NOTE: this must be the last rule in this chain" -j KUBE-NODEPORTS
# ip6tables nat
# ip6tables filter
`
	if diff := cmp.Diff(want, golden.Normalise(save, "")); diff != "" {
		t.Error(diff)
	}
}
