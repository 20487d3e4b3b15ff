package golden

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

// Namespace gives t a network namespace such as the cases' rulesets are for:
// lo, and eth0 with the node's addresses.
func Namespace(t testing.TB) *lab.Namespace {
	t.Helper()
	ns := labtest.Namespace(t)
	Settle(t, ns)
	return ns
}

// Settle gives an empty namespace the eth0 of the cases: 192.168.7.1/24,
// 192.168.8.1/24 and fd00:7::1/64.
func Settle(t testing.TB, ns *lab.Namespace) {
	t.Helper()
	err := ns.AddLink("eth0",
		netip.MustParsePrefix("192.168.7.1/24"),
		netip.MustParsePrefix("192.168.8.1/24"),
		netip.MustParsePrefix("fd00:7::1/64"))
	if err != nil {
		t.Fatal(err)
	}
}

// Read is the ruleset of ns, normalised. It skips t where the iptables tools
// are missing.
func Read(t testing.TB, ns *lab.Namespace) string {
	t.Helper()
	return Normalise(
		labtest.Run(t, ns, "", "iptables-nft-save"),
		labtest.Run(t, ns, "", "ip6tables-nft-save"))
}

// patience is how long Await waits for a program to write its rules.
const patience = 30 * time.Second

// Await reads the ruleset of ns again and again until it is want. If it never
// is, t fails with the difference.
func Await(t testing.TB, ns *lab.Namespace, want string) {
	t.Helper()
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for deadline := time.Now().Add(patience); ; <-ticks.C {
		got := Read(t, ns)
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s (-want +got):\n%s", patience, cmp.Diff(want, got))
		}
	}
}
