package kernel

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"

	"github.com/nlproxy/nlproxy/dataplane/wire"
)

// blame is the part of a message that an error is about, found by the offset
// that the kernel gives with it (NLMSGERR_ATTR_OFFS; for the tables and chains
// since 4.19, for expressions later).
type blame struct {
	// attribute is the type of the message's attribute; 0 if it is not known.
	attribute uint16
	// expr is the expression, an NFTA_LIST_ELEM's value, and index its place
	// in the rule, if the error is about one.
	expr  []byte
	index int
}

// blamed finds what is at offset in the message for op.
func blamed(op *rules.Op, offset int) blame {
	m := appendOp(nil, op, 0, 0)
	at := nfHeader
	for kind, value := range wire.Attributes(m[nfHeader:]) {
		end := at + unix.NLA_HDRLEN + wire.Align(len(value))
		if offset >= at && offset < end {
			b := blame{attribute: kind}
			if kind == unix.NFTA_RULE_EXPRESSIONS && op.Verb.MakesRule() {
				b.expr, b.index = exprAt(value, offset-at-unix.NLA_HDRLEN)
			}
			return b
		}
		at = end
	}
	return blame{}
}

// exprAt returns the expression at offset in a list, and its index.
func exprAt(list []byte, offset int) (expr []byte, index int) {
	at := 0
	for _, value := range wire.Attributes(list) {
		end := at + unix.NLA_HDRLEN + wire.Align(len(value))
		if offset >= at && offset < end {
			return value, index
		}
		at = end
		index++
	}
	return nil, 0
}

// lacking holds what the kernel says for what it does not know.
var lacking = []unix.Errno{unix.ENOENT, unix.EOPNOTSUPP, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT}

// feature returns the kernel module for want of which op was refused with
// errno because of b, or "" if there is another reason.
func feature(op *rules.Op, errno unix.Errno, b blame) string {
	family := op.Place.Chain.Table.Family
	switch {
	case !slices.Contains(lacking, errno):
		return ""
	case op.Verb == rules.AddTable:
		return map[model.Family]string{model.IPv4: "nf_tables_ipv4", model.IPv6: "nf_tables_ipv6"}[family]
	case op.Verb == rules.AddChain && op.Hook != nil && errno == unix.ENOENT && b.attribute != unix.NFTA_CHAIN_TABLE:
		return "nft_chain_" + op.Hook.Type
	case !op.Verb.MakesRule():
		return ""
	case b.expr != nil:
		return module(b.expr, family)
	case b.attribute != 0:
		return ""
	}
	return anyModule(op.Exprs, family)
}

// anyModule returns the modules that a rule's expressions need, for kernels
// that do not say which one they miss.
func anyModule(list []byte, family model.Family) string {
	var names []string
	for _, expr := range wire.Attributes(list) {
		if name := module(expr, family); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// The expressions that nf_tables is built with (nf_tables_core.c, 6.18; the
// counter before 5.18 is one of two).
var builtIn = []string{"bitwise", "byteorder", "cmp", "counter", "dynset", "exthdr", "immediate",
	"inner", "last", "lookup", "meta", "objref", "payload", "range", "rt"}

// xtModules holds the modules of those xtables extensions that are not named
// "xt_" and their own name. The key of a target is in capitals, as its name.
var xtModules = map[string]string{
	"CONNMARK": "xt_connmark",
	"DNAT":     "xt_nat",
	"icmp":     "xt_tcpudp",
	"icmp6":    "xt_tcpudp",
	"MARK":     "xt_mark",
	"SNAT":     "xt_nat",
	"tcp":      "xt_tcpudp",
	"udp":      "xt_tcpudp",
	"udplite":  "xt_tcpudp",
}

// module returns the kernel module that an expression needs, or "" if it needs
// none beside nf_tables.
func module(expr []byte, family model.Family) string {
	name, data := exprName(expr)
	switch {
	case slices.Contains(builtIn, name):
		return ""
	case name != "match" && name != "target":
		return "nft_" + name
	}
	extension := string(text(attribute(data, unix.NFTA_MATCH_NAME))) // 1 for targets as well
	if extension == "REJECT" {
		return map[model.Family]string{model.IPv4: "ipt_REJECT", model.IPv6: "ip6t_REJECT"}[family]
	}
	if named, ok := xtModules[extension]; ok {
		return named
	}
	return "xt_" + extension
}

// exprName returns an expression's name and its own attributes.
func exprName(expr []byte) (name string, data []byte) {
	return string(text(attribute(expr, unix.NFTA_EXPR_NAME))), attribute(expr, unix.NFTA_EXPR_DATA)
}

// describe names an expression: "cmp", "match recent".
func describe(expr []byte) string {
	name, data := exprName(expr)
	if name == "match" || name == "target" {
		return name + " " + string(text(attribute(data, unix.NFTA_MATCH_NAME)))
	}
	return name
}

// jump returns the chain that an expression jumps to, or "" if it does not.
func jump(expr []byte) string {
	_, data := exprName(expr)
	verdict := attribute(attribute(data, unix.NFTA_IMMEDIATE_DATA), unix.NFTA_DATA_VERDICT)
	return string(text(attribute(verdict, unix.NFTA_VERDICT_CHAIN)))
}

// missing says what an expression refers to, which does not exist.
func missing(expr []byte) string {
	name, data := exprName(expr)
	switch name {
	case "immediate":
		return fmt.Sprintf("chain %s, to which it jumps, does not exist", jump(expr))
	case "lookup":
		return fmt.Sprintf("set %s does not exist", text(attribute(data, unix.NFTA_LOOKUP_SET)))
	}
	return describe(expr) + " refers to something that does not exist"
}
