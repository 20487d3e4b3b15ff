package traffic

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/nlproxy/nlproxy/dataplane/plan"
)

// marksTable gives packets that come in by eth0 a mark, and notes the marks of
// those to the server at pod-1 before and behind nat's POSTROUTING (priority 100).
const marksTable = `
table inet marks {}
delete table inet marks
table inet marks {
	set before { type mark; flags dynamic; size 1024; }
	set behind { type mark; flags dynamic; size 1024; }
	chain first { type filter hook prerouting priority -300; iifname eth0 meta mark set %#x; }
	chain middle { type filter hook postrouting priority 99; oifname veth-pod-1 th dport 8080 add @before { meta mark }; }
	chain last { type filter hook postrouting priority 300; oifname veth-pod-1 th dport 8080 add @behind { meta mark }; }
}
`

// marks are those in a set of the table.
func (p *proxy) marks(t *testing.T, set string) []uint32 {
	t.Helper()
	var marks []uint32
	for _, m := range regexp.MustCompile("0x[0-9a-f]+").FindAllString(p.run(t, "", "nft", "list", "set", "inet", "marks", set), -1) {
		mark, err := strconv.ParseUint(m, 0, 32)
		if err != nil {
			t.Fatal(err)
		}
		marks = append(marks, uint32(mark))
	}
	slices.Sort(marks)
	return marks
}

// TestOnlyTheMasqueradeBitOfAMarkIsTouched sends packets that bring a mark with
// all other bits set, or some, through a masqueraded frontend.
func TestOnlyTheMasqueradeBitOfAMarkIsTouched(t *testing.T) {
	t.Parallel()
	s := service{name: "marked", number: 1, kind: "NodePort", endpoints: at("pod-1")}
	p := newProxy(t, settings())
	for _, bit := range []uint8{0, 14, 31} {
		ours := uint32(1) << bit
		for _, brought := range []uint32{0, 0x1000, ^ours} {
			t.Run(fmt.Sprintf("bit %d, mark %#x", bit, brought), func(t *testing.T) {
				p.options.Plan = settings()
				p.options.Plan.MasqueradeBit = bit
				p.start(t)
				p.set(t, s)
				p.run(t, fmt.Sprintf(marksTable, brought), "nft", "-f", "-")
				p.check(t, fromAll([]string{"outside"}, s, masqueraded("pod-1"), nodePort, clusterIP))
				// The first packet of a connection is marked, the others are not.
				if got, want := p.marks(t, "before"), []uint32{brought, brought | ours}; !slices.Equal(got, want) {
					t.Errorf("before masquerade %#x, want %#x", got, want)
				}
				if got, want := p.marks(t, "behind"), []uint32{brought}; !slices.Equal(got, want) {
					t.Errorf("leaving with %#x, want %#x", got, want)
				}
			})
		}
	}
}

// TestMasqueradeBitMayChange leaves nothing of the bit that was used before.
func TestMasqueradeBitMayChange(t *testing.T) {
	t.Parallel()
	s := service{name: "marked", number: 1, kind: "NodePort", endpoints: at("pod-1")}
	p := newProxy(t, settings())
	for _, bit := range []uint8{14, 0, 31, 14} {
		p.options.Plan = plan.Options{MasqueradeBit: bit}
		p.start(t)
		p.set(t, s)
		p.check(t, []row{{from: "outside", to: s, by: nodePort, want: masqueraded("pod-1")}})
	}
}
