package kernel_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestListHasTheTablesAskedForAlone(t *testing.T) {
	n := newNode(t)
	other, elsewhere := chainID(model.IPv4, "nat", "OTHER"), chainID(model.IPv4, "filter", "WEB")
	n.apply(made(web, web6, other, elsewhere)...)
	n.apply(put(rules.Append, web, mark(1)), put(rules.Append, other, mark(2)), put(rules.Append, web, mark(3)),
		put(rules.Append, web6, mark(4)), put(rules.Append, elsewhere, mark(5)))
	chains, err := n.List([]rules.Table{web.Table, web6.Table, {Family: model.IPv6, Name: "absent"}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[rules.ChainID][]int{}
	for _, c := range chains {
		for _, r := range c.Rules {
			got[c.ID] = append(got[c.ID], markOf(r.Exprs))
		}
	}
	want := map[rules.ChainID][]int{web: {1, 3}, other: {2}, web6: {4}}
	if len(chains) != len(want) || len(got) != len(want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	for id, marks := range want {
		if !slices.Equal(got[id], marks) {
			t.Errorf("%v: rules %v, want %v", id, got[id], marks)
		}
	}
}

func TestListOfNothing(t *testing.T) {
	n := newNode(t)
	chains, err := n.List([]rules.Table{web.Table})
	if err != nil || len(chains) != 0 {
		t.Errorf("%v, %v; want nothing", chains, err)
	}
	if _, err := n.ListChain(web); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("chain of an absent table: %v, want fs.ErrNotExist", err)
	}
}

func TestListedHandlesAndExpressionsAreThoseOfTheChain(t *testing.T) {
	n := newNode(t)
	n.apply(made(web)...)
	handle := n.apply(put(rules.Append, web, mark(7)))[0]
	chains, err := n.List([]rules.Table{web.Table})
	if err != nil {
		t.Fatal(err)
	}
	chain, err := n.ListChain(web)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range append(chains, chain) {
		if c.ID != web || c.Hook != nil || len(c.Rules) != 1 || c.Rules[0].Handle != handle || markOf(c.Rules[0].Exprs) != 7 {
			t.Errorf("listed %+v, want rule 7 with handle %d", c, handle)
		}
	}
}

// Each transaction moves all rules from one of two chains to the other, so
// that a list that is not of one moment has too many or too few.
func TestListWhileOthersChangeTheRuleset(t *testing.T) {
	n := newNode(t)
	chains := []rules.ChainID{chainID(model.IPv4, "nat", "A"), chainID(model.IPv6, "nat", "B")}
	n.apply(made(chains...)...)
	const size = 200
	fill := func(id rules.ChainID) (ops []rules.Op) {
		for i := range size {
			ops = append(ops, put(rules.Append, id, append(mark(i), encoded(comment("padding"))...)))
		}
		return ops
	}
	n.apply(fill(chains[0])...)
	other := n.dial(kernel.Options{})
	writer := make(chan error)
	go func() {
		defer close(writer)
		for i := range 200 {
			ops := append(fill(chains[(i+1)%2]), on(rules.Flush, chains[i%2]))
			if _, err := other.Apply(ops); err != nil {
				writer <- err
				return
			}
		}
	}()
	tables := []rules.Table{chains[0].Table, chains[1].Table}
	for writing := true; writing; {
		select {
		case err := <-writer:
			if err != nil {
				t.Fatal(err)
			}
			writing = false
		default:
		}
		got, err := n.List(tables)
		if errors.Is(err, kernel.ErrInterrupted) && writing {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if total := len(got[0].Rules) + len(got[1].Rules); total != size {
			t.Fatalf("%d rules listed, want %d", total, size)
		}
	}
}

// The ruleset of a host on which pods start changes many times in the time that
// a list of all chains takes.
func TestListOfManyChainsOnABusyHost(t *testing.T) {
	n := newNode(t)
	var chains []rules.ChainID
	for i := range 4000 {
		chains = append(chains, chainID(model.IPv4, "nat", fmt.Sprint("CHAIN-", i)))
	}
	n.apply(made(chains...)...)
	busy := chainID(model.IPv4, "filter", "BUSY")
	n.apply(made(busy)...)
	work := []rules.Op{on(rules.Flush, busy)}
	for i := range 2000 { // which take some ten milliseconds
		work = append(work, put(rules.Append, busy, mark(i)))
	}
	other := n.dial(kernel.Options{})
	done, writer := make(chan struct{}), make(chan error)
	before, err := n.Generation()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(writer)
		for {
			select {
			case <-done:
				return
			default:
			}
			if _, err := other.Apply(work); err != nil {
				writer <- err
				return
			}
		}
	}()
	var listed []rules.ListedChain
	changed := false
	for err == nil && !changed {
		var after uint32
		listed, err = n.List([]rules.Table{chains[0].Table})
		if err == nil {
			after, err = n.Generation()
		}
		changed = after-before > 2
		before = after
	}
	close(done)
	if err := errors.Join(err, <-writer); err != nil {
		t.Fatal(err)
	}
	if len(listed) != len(chains) {
		t.Errorf("%d chains, want %d", len(listed), len(chains))
	}
}

func TestListTellsThePolicy(t *testing.T) {
	n := newNode(t)
	labtest.Run(t, n.Namespace, "", "iptables-nft", "-P", "FORWARD", "DROP")
	forward := chainID(model.IPv4, "filter", "FORWARD")
	if c, err := n.ListChain(forward); err != nil || !c.Drops {
		t.Errorf("a chain of policy drop: %+v, %v", c, err)
	}
	labtest.Run(t, n.Namespace, "", "iptables-nft", "-P", "FORWARD", "ACCEPT")
	if c, err := n.ListChain(forward); err != nil || c.Drops {
		t.Errorf("a chain of policy accept: %+v, %v", c, err)
	}
}
