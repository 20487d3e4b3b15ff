package phrase_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/nftables/expr"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/phrase"
	"github.com/nlproxy/nlproxy/dataplane/rules/rulestest"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

type exprs = []expr.Any

// counted is a rule without a verdict, as iptables-nft writes it.
func counted(phrases ...exprs) exprs {
	return slices.Concat(append(phrases, phrase.Counter())...)
}

// ending is a rule with nothing but a verdict.
func ending(verdict exprs) exprs { return append(phrase.Counter(), verdict...) }

func TestPhrasesAreWhatTheToolWrites(t *testing.T) {
	rulestest.Golden(t, slices.Concat(addressCases(), otherCases()))
}

func addressCases() []rulestest.Case {
	var cases []rulestest.Case
	for f, prefixes := range map[model.Family][]string{
		model.IPv4: {"10.96.0.1/32", "10.96.0.2/31", "10.1.2.0/24", "10.244.0.0/16", "10.16.0.0/12", "10.0.0.0/8", "128.0.0.0/1"},
		model.IPv6: {"fd00::1/128", "fd00::2/127", "fd00:96::/108", "fd00:244::/64", "fd00:244::/47", "fd00:244::/32", "fd00::/8"},
	} {
		for _, text := range prefixes {
			p := netip.MustParsePrefix(text)
			cases = append(cases,
				rulestest.Case{Name: "source " + text, Family: f, Rule: "-s " + text, Exprs: counted(phrase.Source(p))},
				rulestest.Case{Name: "not source " + text, Family: f, Rule: "! -s " + text, Exprs: counted(phrase.NotSource(p))},
				rulestest.Case{Name: "destination " + text, Family: f, Rule: "-d " + text, Exprs: counted(phrase.Destination(p))},
				rulestest.Case{Name: "not destination " + text, Family: f, Rule: "! -d " + text, Exprs: counted(phrase.NotDestination(p))},
			)
		}
	}
	return cases
}

func otherCases() []rulestest.Case {
	port := func(p model.Protocol) exprs { return counted(phrase.Protocol(p), phrase.DestinationPort(8080)) }
	var cases []rulestest.Case
	for _, f := range model.Families {
		all := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if f == model.IPv6 {
			all = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
		for _, c := range []rulestest.Case{
			{Name: "any source", Rule: "-s " + all.String(), Exprs: counted(phrase.Source(all))},
			{Name: "any destination", Rule: "-d " + all.String(), Exprs: counted(phrase.Destination(all))},
			// The tool cannot write `! -s 0/0`; this matches as much: nothing.
			{Name: "no source", Rule: "! -i +", Exprs: counted(phrase.NotSource(all))},
			{Name: "no destination", Rule: "! -i +", Exprs: counted(phrase.NotDestination(all))},
			{Name: "no interface", Rule: "! -i +", Exprs: counted(phrase.NotInInterface("+"))},
			// The tool loads the name for `-i +`, and compares it with nothing.
			{Name: "any interface", Rule: "", Exprs: counted(phrase.InInterface("+"))},
			{Name: "tcp", Rule: "-p tcp", Exprs: counted(phrase.Protocol(model.TCP))},
			{Name: "sctp", Rule: "-p sctp", Exprs: counted(phrase.Protocol(model.SCTP))},
			{Name: "tcp port", Rule: "-p tcp --dport 8080", Exprs: port(model.TCP)},
			{Name: "udp port", Rule: "-p udp --dport 8080", Exprs: port(model.UDP)},
			{Name: "interface", Rule: "-i eth0", Exprs: counted(phrase.InInterface("eth0"))},
			{Name: "longest interface", Rule: "-i abcdefghijklmno", Exprs: counted(phrase.InInterface("abcdefghijklmno"))},
			{Name: "not interface", Rule: "! -i eth0", Exprs: counted(phrase.NotInInterface("eth0"))},
			{Name: "interface prefix", Rule: "-i cali+", Exprs: counted(phrase.InInterface("cali+"))},
			{Name: "not interface prefix", Rule: "! -i cali+", Exprs: counted(phrase.NotInInterface("cali+"))},
			{Name: "mark", Rule: "-m mark --mark 0x4000/0x4000", Exprs: counted(phrase.Mark(0x4000))},
			{Name: "not mark", Rule: "-m mark ! --mark 0x4000/0x4000", Exprs: counted(phrase.NotMark(0x4000))},
			{Name: "counter", Rule: "", Exprs: phrase.Counter()},
			{Name: "jump", Rule: "-j " + rulestest.Target, Exprs: ending(phrase.Jump(rulestest.Target))},
			{Name: "return", Rule: "-j RETURN", Exprs: ending(phrase.Return())},
			{Name: "accept", Rule: "-j ACCEPT", Exprs: ending(phrase.Accept())},
			{Name: "drop", Rule: "-j DROP", Exprs: ending(phrase.Drop())},
		} {
			c.Family = f
			cases = append(cases, c)
		}
	}
	return cases
}

func TestHostBitsOfAPrefixDoNotCount(t *testing.T) {
	for _, text := range []string{"10.244.7.7/16", "10.244.7.7/17", "fd00:244::7/32"} {
		p := netip.MustParsePrefix(text)
		got, want := phrase.Source(p), phrase.Source(p.Masked())
		if g, w := data(got), data(want); !slices.Equal(g, w) {
			t.Errorf("%s compares with %x, want %x", text, g, w)
		}
	}
}

func data(e exprs) []byte { return e[len(e)-1].(*expr.Cmp).Data }
