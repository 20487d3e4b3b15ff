package iptables

import (
	"iter"

	"github.com/google/nftables/expr"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/phrase"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/nlproxy/nlproxy/dataplane/xt"
)

// The names of the counters that rules refer to, which kube-proxy exports.
const (
	InvalidDropped     = "ct_state_invalid_dropped_pkts"
	LocalhostNodePorts = "localhost_nps_accepted_pkts"
)

// anchor is a jump from a base chain to one of ours.
type anchor struct {
	table, from, to string
	onlyNew         bool // conntrack state NEW
	comment         string
}

// anchors, those of one base chain together.
var anchors = [...]anchor{
	{natTable, "PREROUTING", services, false, "kubernetes service portals"},
	{natTable, "OUTPUT", services, false, "kubernetes service portals"},
	{natTable, "POSTROUTING", postrouting, false, "kubernetes postrouting rules"},
	{filterTable, "INPUT", externalServices, true, "kubernetes externally-visible service portals"},
	{filterTable, "INPUT", nodePorts, false, "kubernetes health check service ports"},
	{filterTable, "INPUT", proxyFirewall, true, "kubernetes load balancer firewall"},
	{filterTable, "INPUT", firewall, false, ""},
	{filterTable, "FORWARD", externalServices, true, "kubernetes externally-visible service portals"},
	{filterTable, "FORWARD", services, true, "kubernetes service portals"},
	{filterTable, "FORWARD", forward, false, "kubernetes forwarding rules"},
	{filterTable, "FORWARD", proxyFirewall, true, "kubernetes load balancer firewall"},
	{filterTable, "OUTPUT", services, true, "kubernetes service portals"},
	{filterTable, "OUTPUT", proxyFirewall, true, "kubernetes load balancer firewall"},
	{filterTable, "OUTPUT", firewall, false, ""},
}

func (a anchor) rule() rules.Rule {
	var tests []expr.Any
	if a.onlyNew {
		tests = append(tests, xt.State(xt.New)...)
	}
	if a.comment != "" {
		tests = append(tests, xt.Comment(a.comment)...)
	}
	return rule(tests, phrase.Jump(a.to))
}

// frame encodes what no service owns.
func frame(f model.Family, fr plan.Frame) rules.Part {
	in := func(table, name string, rs ...rules.Rule) rules.Block {
		return rules.Block{Chain: chain(f, table, name), Rules: rs}
	}
	p := rules.Part{Family: f, Owner: rules.Frame, Blocks: []rules.Block{
		in(natTable, markMasq, rule(nil, xt.MarkOr(fr.Mark))),
		in(natTable, postrouting, masquerade(f, fr.Mark)...),
		in(natTable, nodePorts),
		in(natTable, services, toNodePorts(fr.NodePorts)...),
		in(filterTable, services),
		in(filterTable, externalServices),
		in(filterTable, nodePorts),
		in(filterTable, proxyFirewall),
		in(filterTable, forward, forwarding(fr)...),
		in(filterTable, firewall, guard(fr)...),
	}}
	for from, rs := range anchored() {
		p.Blocks = append(p.Blocks, in(from[0], from[1], rs...))
	}
	return p
}

// anchored yields each base chain, as table and name, with our anchors in it.
func anchored() iter.Seq2[[2]string, []rules.Rule] {
	return func(yield func([2]string, []rules.Rule) bool) {
		for first := 0; first < len(anchors); {
			from := [2]string{anchors[first].table, anchors[first].from}
			var rs []rules.Rule
			for ; first < len(anchors) && anchors[first].in(from); first++ {
				rs = append(rs, anchors[first].rule())
			}
			if !yield(from, rs) {
				return
			}
		}
	}
}

func (a anchor) in(from [2]string) bool { return a.table == from[0] && a.from == from[1] }

// masquerade rewrites the source of packets with our mark, and takes the mark
// away, so that a packet that passes again, in a tunnel perhaps, is left alone.
func masquerade(f model.Family, mark uint32) []rules.Rule {
	return []rules.Rule{
		rule(phrase.NotMark(mark), phrase.Return()),
		rule(nil, xt.MarkXor(mark)),
		rule(xt.Comment("kubernetes service traffic requiring SNAT"), xt.Masquerade(f)),
	}
}

const lastRule = "kubernetes service nodeports; NOTE: this must be the last rule in this chain"

func toNodePorts(scope plan.NodePortScope) []rules.Rule {
	if scope.All {
		var except []expr.Any
		if scope.Except.IsValid() {
			except = phrase.NotDestination(scope.Except)
		}
		return []rules.Rule{rule(except, xt.Comment(lastRule), xt.DestinationLocal(), phrase.Jump(nodePorts))}
	}
	var rs []rules.Rule
	for _, a := range scope.Addrs {
		rs = append(rs, rule(phrase.Destination(host(a)), xt.Comment(lastRule), phrase.Jump(nodePorts)))
	}
	return rs
}

// forwarding lets through what was translated, whatever the policy of FORWARD,
// and keeps in what cannot be.
func forwarding(fr plan.Frame) []rules.Rule {
	var rs []rules.Rule
	if fr.DropInvalid {
		tests := xt.State(xt.Invalid)
		if fr.CountInvalid {
			tests = append(tests, xt.NFAcct(InvalidDropped)...)
		}
		rs = append(rs, rule(tests, phrase.Drop()))
	}
	return append(rs,
		rule(xt.Comment("kubernetes forwarding rules"), phrase.Mark(fr.Mark), phrase.Accept()),
		rule(xt.Comment("kubernetes forwarding conntrack rule"),
			xt.State(xt.Related, xt.Established), phrase.Accept()))
}

// guard keeps neighbours from 127.0.0.0/8, which route_localnet opens. It is
// the kubelet's rule too, to the letter.
func guard(fr plan.Frame) []rules.Rule {
	if !fr.GuardLocalnet {
		return nil
	}
	return []rules.Rule{rule(
		phrase.NotSource(loopback), phrase.Destination(loopback),
		xt.Comment("block incoming localnet connections"),
		xt.NotState(xt.Related, xt.Established, xt.DNATed),
		phrase.Drop())}
}
