package rules_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/nlproxy/nlproxy/dataplane/rules/rulestest"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

func canonical(t testing.TB, b []byte) []byte {
	t.Helper()
	c, err := rules.Canonical(nil, b)
	if err != nil {
		t.Fatalf("%v\n%s", err, hex.Dump(b))
	}
	return c
}

func number(kind byte, v uint32) []byte {
	return attribute(kind, binary.BigEndian.AppendUint32(nil, v)...)
}

func TestCanonicalIsTheSameForWhatIsSentAndListed(t *testing.T) {
	mask := attribute(unix.NFTA_BITWISE_MASK, attribute(1, 0, 0, 0x40, 0)...)
	for _, c := range []struct {
		name         string
		sent, listed []byte
	}{
		{"counter", encoded(t, model.IPv4, exprs{&expr.Counter{}}), encoded(t, model.IPv4, exprs{&expr.Counter{Bytes: 5, Packets: 7}})},
		{"counter without data", attribute(1, attribute(1, []byte("counter\x00")...)...), encoded(t, model.IPv4, exprs{&expr.Counter{}})},
		{"bitwise operation", element("bitwise", mask), element("bitwise", mask, number(6, 0))},
		{"order", element("meta", number(2, 3), number(1, 1)), element("meta", number(1, 1), number(2, 3))},
		{"register number", element("meta", number(1, unix.NFT_REG32_00)), element("meta", number(1, unix.NFT_REG_1))},
		{"last register number", element("meta", number(1, unix.NFT_REG32_12)), element("meta", number(1, unix.NFT_REG_4))},
		{"set by number", element("lookup", attribute(1, 'a', 0), number(4, 9)), element("lookup", attribute(1, 'a', 0), number(5, 0))},
		{"end of a range", element("nat", number(3, 8), number(5, 9)), element("nat", number(3, 1), number(4, 1), number(5, 9), number(6, 9), number(7, 3))},
		{"chosen flags", element("nat", number(3, 1), number(7, 16)), element("nat", number(3, 1), number(4, 1), number(7, 17))},
		{"masquerade", element("masq"), element("masq", number(1, 0))},
		{"dynset", element("dynset", number(2, 1), number(4, 8), number(9, 2), attribute(10, element("counter", attribute(1, 1))...)),
			element("dynset", number(4, 1), attribute(6, 0, 0, 0, 0, 0, 0, 0, 0), number(9, 0), attribute(10, element("counter", attribute(1, 2))...))},
	} {
		if sent, listed := canonical(t, c.sent), canonical(t, c.listed); !bytes.Equal(sent, listed) {
			t.Errorf("%s: sent\n%slisted\n%s", c.name, hex.Dump(sent), hex.Dump(listed))
		}
	}
}

func TestCanonicalKeepsWhatDiffers(t *testing.T) {
	base := element("nat", number(3, 1))
	for _, other := range [][]byte{
		element("nat", number(3, 2)),
		element("nat", number(3, 1), number(4, 2)),
		element("nat", number(3, 1), number(7, 16)),
		element("redir", number(3, 1)),
		element("nat"),
		slices.Concat(base, base),
		nil,
	} {
		if bytes.Equal(canonical(t, base), canonical(t, other)) {
			t.Errorf("%x is taken for %x", other, base)
		}
	}
}

func TestCanonicalAppendsAndLeavesDstOnError(t *testing.T) {
	dst := append(make([]byte, 0, 1024), "before"...)
	whole := element("meta", number(1, 1))
	got, err := rules.Canonical(dst, whole)
	if err != nil || !bytes.Equal(got, append([]byte("before"), canonical(t, whole)...)) {
		t.Errorf("%x, %v", got, err)
	}
	for _, broken := range [][]byte{
		whole[:len(whole)-1],
		append(bytes.Clone(whole), 1),
		attribute(2, whole...),
		attribute(1, attribute(2, 1, 2, 3)...),
		element("meta", bytes.Repeat(number(1, 1), 33)),
		element("cmp", attribute(3, 1)),
	} {
		got, err := rules.Canonical(dst, broken)
		if err == nil || string(got) != "before" {
			t.Errorf("%x: %x, %v; want an error and dst", broken, got, err)
		}
	}
}

func TestCanonicalDoesNotAllocate(t *testing.T) {
	b := encoded(t, model.IPv4, typical())
	dst := make([]byte, 0, len(b))
	if n := testing.AllocsPerRun(100, func() { _, _ = rules.Canonical(dst, b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCanonicalOfWhatTheKernelListsIsThatOfWhatWasSent(t *testing.T) {
	labtest.Tools(t, "nfacct")
	for _, f := range model.Families {
		t.Run(f.String(), func(t *testing.T) {
			sent := map[rules.ChainID][]rules.Rule{{Table: rules.Table{Family: f, Name: "filter"}, Name: "all"}: everything(f)}
			for chain, r := range targets(f) {
				table := "filter"
				if slices.Contains([]string{"dnat", "masquerade", "nf-nat", "nf-masq"}, chain) {
					table = "nat"
				}
				id := rules.ChainID{Table: rules.Table{Family: f, Name: table}, Name: chain}
				sent[id] = []rules.Rule{r}
			}
			err := labtest.Namespace(t).Do(func() error { return loadAndCompare(t, sent) })
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

func loadAndCompare(t *testing.T, sent map[rules.ChainID][]rules.Rule) error {
	if err := rulestest.Run("", "nfacct", "add", rulestest.Counter); err != nil {
		return err
	}
	tables := map[rules.Table]bool{}
	for id, list := range sent {
		target := rules.ChainID{Table: id.Table, Name: rulestest.Target}
		if err := errors.Join(rulestest.Load(target), rulestest.Load(id, list...)); err != nil {
			return err
		}
		tables[id.Table] = true
	}
	seen := 0
	for table := range tables {
		chains, err := rulestest.List(table)
		if err != nil {
			return err
		}
		for _, c := range chains {
			seen += len(c.Rules)
			compare(t, c, sent[c.ID])
		}
	}
	if seen == 0 {
		return errors.New("nothing was listed")
	}
	return nil
}

func compare(t *testing.T, listed rules.ListedChain, sent []rules.Rule) {
	t.Helper()
	if len(listed.Rules) != len(sent) {
		t.Fatalf("%s: %d rules, sent %d", listed.ID, len(listed.Rules), len(sent))
	}
	for i, r := range sent {
		want := canonical(t, encoded(t, listed.ID.Table.Family, r.Exprs))
		if got := canonical(t, listed.Rules[i].Exprs); !bytes.Equal(want, got) {
			t.Errorf("%s rule %d: sent\n%slisted\n%s", listed.ID, i+1, hex.Dump(want), hex.Dump(got))
		}
	}
}

func FuzzCanonical(f *testing.F) {
	for _, family := range model.Families {
		for _, r := range append(everything(family), rules.Rule{Exprs: natives()}) {
			f.Add(encoded(f, family, r.Exprs))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		once, err := rules.Canonical([]byte{}, b)
		if err != nil {
			if len(once) != 0 {
				t.Errorf("%x beside %v", once, err)
			}
			return
		}
		if twice := canonical(t, once); !bytes.Equal(once, twice) {
			t.Errorf("canonical\n%sof which\n%s", hex.Dump(once), hex.Dump(twice))
		}
	})
}

func BenchmarkCanonical(b *testing.B) {
	exprs := encoded(b, model.IPv4, typical())
	dst := make([]byte, 0, len(exprs))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rules.Canonical(dst, exprs); err != nil {
			b.Fatal(err)
		}
	}
}
