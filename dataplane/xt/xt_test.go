package xt_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables/expr"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/phrase"
	"github.com/nlproxy/nlproxy/dataplane/rules/rulestest"
	"github.com/nlproxy/nlproxy/dataplane/xt"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

type exprs = []expr.Any

// counted is a rule of matches, targeted one of a target, as iptables-nft
// writes them.
func counted(phrases ...exprs) exprs {
	return slices.Concat(append(phrases, phrase.Counter())...)
}

func targeted(phrases ...exprs) exprs {
	last := len(phrases) - 1
	return slices.Concat(slices.Insert(phrases, last, phrase.Counter())...)
}

var longest = strings.Repeat("é", 127) + "x" // 255 bytes

func TestExtensionsAreWhatTheToolWrites(t *testing.T) {
	rulestest.Golden(t, slices.Concat(matchCases(), targetCases()))
}

func matchCases() (cases []rulestest.Case) {
	proto := phrase.Protocol
	for _, f := range model.Families {
		for _, c := range []rulestest.Case{
			{Name: "comment", Rule: "-m comment --comment default/web:http", Exprs: counted(xt.Comment("default/web:http"))},
			{Name: "longest comment", Rule: "-m comment --comment " + longest, Exprs: counted(xt.Comment(longest))},
			{Name: "tcp", Rule: "-p tcp -m tcp", Exprs: counted(proto(model.TCP), xt.TCP())},
			{Name: "udp", Rule: "-p udp -m udp", Exprs: counted(proto(model.UDP), xt.UDP())},
			{Name: "sctp", Rule: "-p sctp -m sctp", Exprs: counted(proto(model.SCTP), xt.SCTP())},
			{Name: "sctp port", Rule: "-p sctp -m sctp --dport 2905", Exprs: counted(proto(model.SCTP), xt.SCTPDestinationPort(2905))},
			statistic(1, "1.0000000000"), statistic(2, "0.5000000000"), statistic(3, "0.3333333333"),
			statistic(7, "0.1428571429"), statistic(4999, "0.0002000400"),
			{Name: "recent check", Rule: "-m recent --rcheck --seconds 10800 --reap --name KUBE-SEP-54YHIQJN2CYRNOVU --rsource",
				Exprs: counted(xt.RecentCheck("KUBE-SEP-54YHIQJN2CYRNOVU", 10800))},
			{Name: "recent set", Rule: "-m recent --set --name KUBE-SEP-54YHIQJN2CYRNOVU --rsource",
				Exprs: counted(xt.RecentSet("KUBE-SEP-54YHIQJN2CYRNOVU"))},
			{Name: "destination local", Rule: "-m addrtype --dst-type LOCAL", Exprs: counted(xt.DestinationLocal())},
			{Name: "source local", Rule: "-m addrtype --src-type LOCAL", Exprs: counted(xt.SourceLocal())},
			{Name: "nfacct", Rule: "-m nfacct --nfacct-name " + rulestest.Counter, Exprs: counted(revision1(xt.NFAcct(rulestest.Counter)))},
			{Name: "new", Rule: "-m conntrack --ctstate NEW", Exprs: counted(xt.State(xt.New))},
			{Name: "invalid", Rule: "-m conntrack --ctstate INVALID", Exprs: counted(xt.State(xt.Invalid))},
			{Name: "known", Rule: "-m conntrack --ctstate RELATED,ESTABLISHED", Exprs: counted(xt.State(xt.Related, xt.Established))},
			{Name: "not known", Rule: "-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT",
				Exprs: counted(xt.NotState(xt.Related, xt.Established, xt.DNATed))},
			{Name: "other states", Rule: "-m conntrack --ctstate SNAT,UNTRACKED", Exprs: counted(xt.State(xt.SNATed, xt.Untracked))},
		} {
			c.Family = f
			cases = append(cases, c)
		}
	}
	return cases
}

// revision1 is what the tool takes of nfacct; the bytes are the same.
func revision1(e exprs) exprs {
	e[0].(*expr.Match).Rev = 1
	return e
}

func statistic(n int, probability string) rulestest.Case {
	return rulestest.Case{
		Name:  "statistic " + probability,
		Rule:  "-m statistic --mode random --probability " + probability,
		Exprs: counted(xt.Statistic(n)),
	}
}

func targetCases() (cases []rulestest.Case) {
	to := map[model.Family]string{model.IPv4: "10.244.1.5:8080", model.IPv6: "[fd00:244::5]:8080"}
	with := map[model.Family]string{model.IPv4: "icmp-port-unreachable", model.IPv6: "icmp6-port-unreachable"}
	for _, f := range model.Families {
		for _, c := range []rulestest.Case{
			{Name: "or mark", Table: "nat", Chain: "PREROUTING", Rule: "-j MARK --or-mark 0x4000", Exprs: targeted(xt.MarkOr(0x4000))},
			{Name: "xor mark", Table: "nat", Chain: "PREROUTING", Rule: "-j MARK --xor-mark 0x4000", Exprs: targeted(xt.MarkXor(0x4000))},
			{Name: "dnat", Table: "nat", Chain: "PREROUTING", Rule: "-p tcp -j DNAT --to-destination " + to[f],
				Exprs: targeted(phrase.Protocol(model.TCP), xt.DNAT(netip.MustParseAddrPort(to[f])))},
			{Name: "masquerade", Table: "nat", Chain: "POSTROUTING", Rule: "-j MASQUERADE --random-fully", Exprs: targeted(xt.Masquerade(f))},
			{Name: "reject", Rule: "-j REJECT --reject-with " + with[f], Exprs: targeted(xt.Reject(f))},
		} {
			c.Family = f
			cases = append(cases, c)
		}
	}
	return cases
}
