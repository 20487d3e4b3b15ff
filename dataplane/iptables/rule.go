package iptables

import (
	"net/netip"
	"slices"

	"github.com/google/nftables/expr"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/phrase"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/nlproxy/nlproxy/dataplane/xt"
)

// rule joins phrases; a counter goes before the last, which is what the rule
// does.
func rule(phrases ...[]expr.Any) rules.Rule {
	last := len(phrases) - 1
	exprs := slices.Concat(phrases[:last]...)
	exprs = append(exprs, phrase.Counter()...)
	return rules.Rule{Exprs: append(exprs, phrases[last]...)}
}

// limited is a rule that tests for protocol p, of which its extensions are told.
func limited(p model.Protocol, phrases ...[]expr.Any) rules.Rule {
	r := rule(phrases...)
	r.Proto = uint8(p)
	return r
}

// nothing is the action of a rule that only counts.
func nothing() []expr.Any { return nil }

// to tests for the destination of a packet, annotated with a comment.
func to(addr netip.Addr, port uint16, p model.Protocol, comment string) []expr.Any {
	return slices.Concat(
		phrase.Destination(host(addr)),
		phrase.Protocol(p),
		xt.Comment(comment),
		toPort(p, port))
}

// host is the prefix that holds one address.
func host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// toPort tests for the destination port. iptables-nft 1.8.9 writes it as
// expressions of nf_tables for TCP and UDP, and as an extension for SCTP.
func toPort(p model.Protocol, port uint16) []expr.Any {
	if p == model.SCTP {
		return xt.SCTPDestinationPort(port)
	}
	return phrase.DestinationPort(port)
}

// bare is a protocol's extension that tests nothing.
func bare(p model.Protocol) []expr.Any {
	switch p {
	case model.TCP:
		return xt.TCP()
	case model.UDP:
		return xt.UDP()
	}
	return xt.SCTP()
}

// reject refuses a connection at once.
func reject(f model.Family) []expr.Any { return xt.Reject(f) }
