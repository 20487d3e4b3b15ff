package traffic

import (
	"net/netip"
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

// chainsOf are the chains of family f whose names begin with prefix and whose
// rules are for a port, as "namespace/name:port".
func (p *proxy) chainsOf(t testing.TB, f model.Family, prefix, port string) []rules.ListedChain {
	t.Helper()
	var found []rules.ListedChain
	for _, c := range p.chains(t) {
		if c.ID.Table.Family == f && strings.HasPrefix(c.ID.Name, prefix) && isFor(t, c, port) {
			found = append(found, c)
		}
	}
	return found
}

func isFor(t testing.TB, c rules.ListedChain, port string) bool {
	for _, r := range c.Rules {
		for _, i := range infos(t, c, r) {
			if comment, ok := i.(xt.CommentInfo); ok && (comment.Text + " ")[:min(len(comment.Text)+1, len(port)+1)] == port+" " {
				return true
			}
		}
	}
	return false
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

// lists are the names of the lists in which a port's endpoints keep their
// clients.
func (p *proxy) lists(t testing.TB, f model.Family, port string) map[netip.AddrPort]string {
	t.Helper()
	names := map[netip.AddrPort]string{}
	for _, c := range p.chainsOf(t, f, "KUBE-SEP-", port) {
		to, list := only[xt.DNATInfo](t, c), only[xt.RecentInfo](t, c)
		if len(to) != 1 || len(list) != 1 {
			t.Fatalf("%s: %d targets and %d lists", c.ID, len(to), len(list))
		}
		names[to[0].Min] = list[0].Name
	}
	return names
}
