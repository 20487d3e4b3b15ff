package rules

import (
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/google/nftables/expr"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

// fakeKernel carries out operations as nf_tables does: handles are never used
// again, and what does not exist is refused.
type fakeKernel struct {
	tables map[Table]bool
	chains map[ChainID][]Listed
	handle uint64
	listed int
}

func newFakeKernel() *fakeKernel {
	return &fakeKernel{tables: map[Table]bool{}, chains: map[ChainID][]Listed{}}
}

func (k *fakeKernel) apply(ops []Op) ([]uint64, error) {
	handles := make([]uint64, len(ops))
	for i, op := range ops {
		h, err := k.one(op)
		if err != nil {
			return nil, fmt.Errorf("%v %v: %w", op.Verb, op.Place, err)
		}
		handles[i] = h
	}
	return handles, nil
}

func (k *fakeKernel) one(op Op) (uint64, error) {
	id := op.Place.Chain
	if op.Verb == AddTable {
		k.tables[id.Table] = true
		return 0, nil
	}
	if !k.tables[id.Table] {
		return 0, fmt.Errorf("table: %w", fs.ErrNotExist)
	}
	rules, exists := k.chains[id]
	if op.Verb == AddChain {
		k.chains[id] = rules
		return 0, nil
	}
	if !exists {
		return 0, fmt.Errorf("chain: %w", fs.ErrNotExist)
	}
	return k.rule(op, id, rules)
}

func (k *fakeKernel) rule(op Op, id ChainID, rules []Listed) (uint64, error) {
	at := slices.IndexFunc(rules, func(r Listed) bool { return r.Handle == op.Handle })
	relative := op.Verb >= InsertBefore && op.Verb <= Delete
	if relative && at < 0 {
		return 0, fmt.Errorf("handle %d: %w", op.Handle, fs.ErrNotExist)
	}
	k.handle++
	made := Listed{Handle: k.handle, Exprs: op.Exprs}
	switch op.Verb {
	case Prepend:
		k.chains[id] = slices.Insert(rules, 0, made)
	case Append:
		k.chains[id] = append(rules, made)
	case InsertBefore:
		k.chains[id] = slices.Insert(rules, at, made)
	case InsertAfter:
		k.chains[id] = slices.Insert(rules, at+1, made)
	case Replace:
		rules[at] = made
	case Delete:
		k.chains[id] = slices.Delete(rules, at, at+1)
	case Flush:
		k.chains[id] = nil
	case DeleteChain:
		if len(rules) > 0 || k.refers(id) {
			return 0, fmt.Errorf("chain is in use")
		}
		delete(k.chains, id)
	}
	return k.handle, nil
}

// refers reports whether any rule jumps to the chain.
func (k *fakeKernel) refers(id ChainID) bool {
	for other, rules := range k.chains {
		for _, r := range rules {
			exprs, err := Decode(other.Table.Family, r.Exprs)
			if err != nil {
				panic(err)
			}
			for _, e := range exprs {
				if v, ok := e.(*expr.Verdict); ok && other.Table == id.Table && v.Chain == id.Name {
					return true
				}
			}
		}
	}
	return false
}

func (k *fakeKernel) list(id ChainID) (ListedChain, error) {
	k.listed++
	rules, ok := k.chains[id]
	if !ok {
		return ListedChain{}, fs.ErrNotExist
	}
	return ListedChain{ID: id, Rules: slices.Clone(rules)}, nil
}

func (k *fakeKernel) listAll() []ListedChain {
	var all []ListedChain
	for id := range k.chains {
		c, _ := k.list(id)
		all = append(all, c)
	}
	return all
}

func TestFakeKernelRefusesWhatDoesNotExist(t *testing.T) {
	id := ChainID{Table{model.IPv4, "nat"}, "A"}
	place := Place{Chain: id, Index: -1}
	k := newFakeKernel()
	for _, op := range []Op{{Verb: AddChain, Place: place}, {Verb: Append, Place: place}} {
		if _, err := k.apply([]Op{op}); err == nil {
			t.Errorf("%v without a table succeeded", op.Verb)
		}
	}
	if _, err := k.apply([]Op{{Verb: AddTable, Place: place}, {Verb: AddChain, Place: place}}); err != nil {
		t.Fatal(err)
	}
	for _, v := range []Verb{InsertBefore, InsertAfter, Replace, Delete} {
		if _, err := k.apply([]Op{{Verb: v, Place: place, Handle: 7}}); err == nil {
			t.Errorf("%v of a missing rule succeeded", v)
		}
	}
	if _, err := k.apply([]Op{{Verb: Append, Place: place}, {Verb: DeleteChain, Place: place}}); err == nil {
		t.Error("a chain with rules was deleted")
	}
}
