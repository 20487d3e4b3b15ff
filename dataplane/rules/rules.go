package rules

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/google/nftables/expr"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

// Table names an nf_tables table.
type Table struct {
	Family model.Family
	Name   string
}

// String returns for instance "ip nat", as nft writes it.
func (t Table) String() string {
	if t.Family == model.IPv6 {
		return "ip6 " + t.Name
	}
	return "ip " + t.Name
}

// ChainID names a chain.
type ChainID struct {
	Table Table
	Name  string
}

// String returns for instance "ip nat KUBE-SERVICES", or the table alone where
// no chain is named.
func (c ChainID) String() string {
	if c.Name == "" {
		return c.Table.String()
	}
	return c.Table.String() + " " + c.Name
}

func (c ChainID) compare(o ChainID) int {
	return cmp.Or(
		cmp.Compare(c.Table.Family, o.Table.Family),
		strings.Compare(c.Table.Name, o.Table.Name),
		strings.Compare(c.Name, o.Name))
}

// Kind says who owns a chain and how its rules are ordered.
type Kind uint8

const (
	// Private chains belong to one owner, who gives all their rules in order.
	Private Kind = iota
	// Shared chains are ours as a whole. Each owner gives a block of rules:
	// ordered within itself, in no order against other blocks, except that
	// the block of the Frame owner is last.
	Shared
	// Lent chains belong to others, as PREROUTING does. Each rule of ours in
	// them is an anchor, wanted once wherever it stands, and put first when it
	// is missing. A lent chain is made where it does not exist and is never
	// flushed or deleted.
	Lent
)

// Frame is the owner of everything that no service owns.
const Frame = ""

// Hook describes a base chain, for one that has to be made.
type Hook struct {
	// Type is "nat" or "filter".
	Type string
	// Number is the netfilter hook (NF_INET_PRE_ROUTING = 0 and so on in
	// linux/netfilter.h).
	Number uint32
	// Priority orders the chains at a hook, lowest first.
	Priority int32
}

// Chain is a chain as its owners want it.
type Chain struct {
	ID   ChainID
	Kind Kind
	// Hook is nil for all but base chains.
	Hook *Hook
}

// Rule is one rule. Its zero value matches everything and does nothing.
type Rule struct {
	Exprs []expr.Any
	// Proto is the layer-4 protocol that the xtables extensions in Exprs are
	// told the rule is limited to (NFTA_RULE_COMPAT_PROTO); 0 for any. The
	// kernel refuses extensions such as "tcp" without it, and never lists it.
	Proto uint8
}

// Block is what one owner puts into one chain.
type Block struct {
	Chain Chain
	Rules []Rule
}

// Part is all that one owner wants, leaves first: a block comes after those
// whose chains its rules jump to, unless these belong to Frame.
type Part struct {
	// Family is that of all blocks; what the owner has in the other family is
	// another part.
	Family model.Family
	// Owner is the service, as "namespace/name", or Frame.
	Owner  string
	Blocks []Block
}

// Place says which rule of ours an operation or an error is about.
type Place struct {
	Owner string
	Chain ChainID
	// Index counts the owner's rules in that chain from 0; -1 for the chain
	// itself.
	Index int
}

// String returns for instance `default/web: ip nat KUBE-SERVICES rule 1`,
// counting from 1 as iptables does.
func (p Place) String() string {
	s := p.Chain.String()
	if p.Index >= 0 {
		s = fmt.Sprintf("%s rule %d", s, p.Index+1)
	}
	if p.Owner == Frame {
		return s
	}
	return p.Owner + ": " + s
}
