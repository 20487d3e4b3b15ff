package traffic

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables/expr"

	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/nlproxy/nlproxy/dataplane/xt"
)

// chains are those of the tables that are ours.
func (p *proxy) chains(t testing.TB) []rules.ListedChain {
	t.Helper()
	chains, err := p.conn.List(iptables.Tables())
	if err != nil {
		t.Fatal(err)
	}
	return chains
}

// spreading are the chains of family f that spread the connections to a port,
// "namespace/name:port", over its Cluster pool.
func (p *proxy) spreading(t testing.TB, f model.Family, port string) []rules.ListedChain {
	t.Helper()
	var found []rules.ListedChain
	for _, c := range p.chains(t) {
		isFor := func(i xt.CommentInfo) bool { return strings.HasPrefix(i.Text+" ", port+" ") }
		if c.ID.Table.Family == f && strings.HasPrefix(c.ID.Name, "KUBE-SVC-") &&
			slices.ContainsFunc(only[xt.CommentInfo](t, c), isFor) {
			found = append(found, c)
		}
	}
	return found
}

// infos are what the extensions in a rule keep, in their order.
func infos(t testing.TB, c rules.ListedChain, r rules.Listed) []xt.Info {
	t.Helper()
	exprs, err := rules.Decode(c.ID.Table.Family, r.Exprs)
	if err != nil {
		t.Fatalf("%s: %v", c.ID, err)
	}
	var all []xt.Info
	for _, e := range exprs {
		var i xt.Info
		switch e := e.(type) {
		case *expr.Match:
			i, err = xt.ParseMatch(c.ID.Table.Family, e)
		case *expr.Target:
			i, err = xt.ParseTarget(c.ID.Table.Family, e)
		default:
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", c.ID, err)
		}
		all = append(all, i)
	}
	return all
}

// only are the infos of type I in the rules of chains, in their order.
func only[I xt.Info](t testing.TB, chains ...rules.ListedChain) []I {
	t.Helper()
	var all []I
	for _, c := range chains {
		for _, r := range c.Rules {
			for _, i := range infos(t, c, r) {
				if i, ok := i.(I); ok {
					all = append(all, i)
				}
			}
		}
	}
	return all
}
