package iptables

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/nftables/expr"

	"github.com/nlproxy/nlproxy/dataplane/rules"
)

// SaveOptions configures Save. The zero value is what iptables-save prints
// without options.
type SaveOptions struct {
	// Counters has each rule preceded by its packets and bytes, as
	// iptables-save -c does.
	Counters bool
}

// Save prints chains as iptables-nft-save 1.8.9, and for IPv6
// ip6tables-nft-save, prints them: tables by family and name, in each the base
// chains in the order of their hooks and then the others by name, rules in
// their order. It is for what Encode gives and for what a kernel lists. It
// leaves out the tools' comments with the time, and built-in chains that do not
// exist, which the tools print as empty.
//
// What has no counterpart in a KUBE-* ruleset is named in a comment like
// "/* limit */" at its place in the rule. Errors are those of w.
func Save(w io.Writer, chains []rules.ListedChain, opts SaveOptions) error {
	chains = slices.Clone(chains)
	slices.SortStableFunc(chains, inSaveOrder)
	out := bufio.NewWriter(w)
	for len(chains) > 0 {
		table := chains[0].ID.Table
		n := 1
		for n < len(chains) && chains[n].ID.Table == table {
			n++
		}
		saveTable(out, chains[:n], opts)
		chains = chains[n:]
	}
	return out.Flush()
}

func inSaveOrder(a, b rules.ListedChain) int {
	return cmp.Or(
		cmp.Compare(a.ID.Table.Family, b.ID.Table.Family),
		strings.Compare(a.ID.Table.Name, b.ID.Table.Name),
		cmp.Compare(hookNumber(a), hookNumber(b)),
		strings.Compare(a.ID.Name, b.ID.Name))
}

// hookNumber orders chains that are at no hook last.
func hookNumber(c rules.ListedChain) int64 {
	if c.Hook == nil {
		return 1 << 32
	}
	return int64(c.Hook.Number)
}

func saveTable(out *bufio.Writer, chains []rules.ListedChain, opts SaveOptions) {
	fmt.Fprintf(out, "*%s\n", chains[0].ID.Table.Name)
	for _, c := range chains {
		fmt.Fprintf(out, ":%s %s [0:0]\n", c.ID.Name, policy(c))
	}
	for _, c := range chains {
		for _, r := range c.Rules {
			saveRule(out, c.ID, r, opts)
		}
	}
	out.WriteString("COMMIT\n")
}

func policy(c rules.ListedChain) string {
	switch {
	case c.Hook == nil:
		return "-"
	case c.Drops:
		return "DROP"
	}
	return "ACCEPT"
}

func saveRule(out *bufio.Writer, c rules.ChainID, r rules.Listed, opts SaveOptions) {
	l := line{family: c.Table.Family}
	exprs, err := rules.Decode(c.Table.Family, r.Exprs)
	if err != nil {
		l.unknown("%v", err)
	}
	for _, e := range exprs {
		l.add(e)
	}
	if opts.Counters {
		fmt.Fprintf(out, "[%d:%d] ", l.counter.Packets, l.counter.Bytes)
	}
	fmt.Fprintf(out, "-A %s%s\n", c.Name, l.options())
}

// add takes the next expression of a rule.
func (l *line) add(e expr.Any) {
	switch e := e.(type) {
	case *expr.Meta:
		l.load(e, !e.SourceRegister)
	case *expr.Payload:
		l.load(e, e.OperationType == expr.PayloadLoad)
	case *expr.Bitwise:
		l.keep(e)
	case *expr.Cmp:
		l.compare(e)
	case *expr.Match:
		l.match(e)
	case *expr.Target:
		l.target(e)
	case *expr.Verdict:
		l.verdict(e)
	case *expr.Counter:
		l.counter = *e
	case *rules.Opaque:
		l.unknown("%s", e.Name)
	default:
		l.unknown("%s", nameOf(e))
	}
}

// nameOf is the name of an expression's type, which is nearly nf_tables' own.
func nameOf(e expr.Any) string {
	return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", e), "*expr."))
}

// verdicts are those that iptables has a name for.
var verdicts = map[expr.VerdictKind]string{
	expr.VerdictReturn: "RETURN",
	expr.VerdictAccept: "ACCEPT",
	expr.VerdictDrop:   "DROP",
}

func (l *line) verdict(e *expr.Verdict) {
	name, named := verdicts[e.Kind]
	switch {
	case named:
		l.action = " -j " + name
	case e.Kind == expr.VerdictJump:
		l.action = " -j " + e.Chain
	case e.Kind == expr.VerdictGoto:
		l.action = " -g " + e.Chain
	default:
		l.unknown("verdict %d", e.Kind)
	}
}
