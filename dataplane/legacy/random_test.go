package legacy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// randomChains are chains of others and of kube-proxy, in the order in which
// they may jump to each other; a dump has them in the order of their names.
var randomChains = []string{
	"A-FOREIGN", "KUBE-SERVICES", "Z-FOREIGN", "KUBE-SVC-A", "KUBE-FIREWALL", "KUBE-SVC-B", "KUBE-MARK-DROP",
	"KUBE-SEP-A", "M-FOREIGN", "KUBE-XLB-B", "LAST",
}

// randomDump is a nat table of such chains, of which most jump to chains after
// them, in which some rules have no target.
func randomDump(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString("*nat\n")
	bases := []string{"PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"}
	for _, chain := range bases {
		fmt.Fprintf(&b, ":%s ACCEPT [%d:%d]\n", chain, r.IntN(100), r.IntN(100))
	}
	// nat's KUBE-FIREWALL is nobody's whom we know.
	for _, chain := range randomChains {
		fmt.Fprintf(&b, ":%s - [0:0]\n", chain)
	}
	for i, chain := range append(bases, randomChains...) {
		after := randomChains[max(0, i-len(bases)+1):]
		for n := range r.IntN(5) {
			fmt.Fprintf(&b, "[%d:%d] -A %s -s 192.0.2.%d/32%s\n", r.IntN(100), r.IntN(100), chain, n, randomTarget(r, after))
		}
	}
	// One that is there to be removed in any case.
	b.WriteString("-A OUTPUT -j KUBE-SERVICES\nCOMMIT\n")
	return b.String()
}

func randomTarget(r *rand.Rand, chains []string) string {
	switch kind := r.IntN(10); {
	case kind < 2:
		return ""
	case kind < 4 || len(chains) == 0:
		return " -j RETURN"
	case kind < 6:
		return " -g " + chains[r.IntN(len(chains))]
	}
	return " -j " + chains[r.IntN(len(chains))]
}

func TestRandomTables(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			newNode(t).wantForeign(model.IPv4, randomDump(rand.New(rand.NewPCG(seed, 0))))
		})
	}
}
