package kernel_test

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
)

func (n node) wantTables(want ...rules.Table) {
	n.t.Helper()
	if got, err := n.Tables(); err != nil || !slices.Equal(got, want) {
		n.t.Errorf("tables %v, %v; want %v", got, err, want)
	}
}

func TestTablesOfOtherFamiliesAreNotListed(t *testing.T) {
	n := newNode(t)
	n.wantTables()
	n.run("nft", "add table inet nat; add table bridge nat; add table ip6 nat; add table ip a; add table ip nat")
	n.wantTables(rules.Table{Family: model.IPv4, Name: "a"}, web.Table, web6.Table)
}

func TestTableGoesWithAllThatIsInIt(t *testing.T) {
	n := newNode(t)
	n.run("nft", `
		add table ip nat { set s { type ipv4_addr; flags interval; }; counter c { }; chain a { jump b; }; chain b { ip saddr @s counter name c; }
		map m { type inet_service : verdict; elements = { 80 : jump b }; }; chain p { type nat hook prerouting priority 0; tcp dport vmap @m; }; }
		add table ip other { chain a { }; }
		add table inet nat { chain a { }; }`)
	n.apply(on(rules.DeleteTable, web))
	n.wantTables(rules.Table{Family: model.IPv4, Name: "other"})
	n.run("nft", "list", "chain", "inet", "nat", "a")
}

func TestTablesGoTogetherOrNotAtAll(t *testing.T) {
	n := newNode(t)
	n.apply(made(web)...)
	none := rules.ChainID{Table: web6.Table}
	_, err := n.Apply([]rules.Op{on(rules.DeleteTable, web), on(rules.DeleteTable, none)})
	wantLines(t, err, "default/web: ip6 nat: delete table: the table does not exist (no such file or directory)")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want fs.ErrNotExist", err)
	}
	n.wantTables(web.Table)
}
