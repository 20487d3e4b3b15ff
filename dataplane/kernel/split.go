package kernel

import (
	"errors"

	"github.com/nlproxy/nlproxy/dataplane/rules"
)

// applySplit commits ops without the deletions of chains, then these. Kernels
// before 6.2 hold a chain for referenced until the transaction that removes
// its last reference is over.
func (c *Conn) applySplit(ops []rules.Op) ([]uint64, error) {
	deletions, rest, at := split(ops, func(i int) bool { return ops[i].Verb == rules.DeleteChain })
	handles := make([]uint64, len(ops))
	if len(rest) > 0 {
		got, err := c.transact(rest)
		if err != nil {
			return nil, err
		}
		for i, h := range got {
			handles[at[i]] = h
		}
	}
	return handles, c.deleteChains(deletions)
}

// deleteChains deletes those of the chains that the kernel lets go. Something
// has been committed before, so that no error may say otherwise.
func (c *Conn) deleteChains(ops []rules.Op) error {
	kept := Refused{Rest: true}
	for len(ops) > 0 {
		_, err := c.transact(ops)
		var refused *Refused
		switch {
		case err == nil:
			ops = nil
		case errors.As(err, &refused) && refused.onlyBusyChains():
			kept.Objects = append(kept.Objects, refused.Objects...)
			ops = without(ops, refused)
		default:
			return &Uncertain{Err: err}
		}
	}
	if len(kept.Objects) == 0 {
		return nil
	}
	return &kept
}

// without returns ops but for those refused.
func without(ops []rules.Op, r *Refused) []rules.Op {
	refused := make(map[int]bool, len(r.Objects))
	for _, o := range r.Objects {
		refused[o.op] = true
	}
	_, rest, _ := split(ops, func(i int) bool { return refused[i] })
	return rest
}

// split divides ops into the chosen and the others, whose places in ops are at.
func split(ops []rules.Op, choose func(i int) bool) (chosen, others []rules.Op, at []int) {
	for i, op := range ops {
		if choose(i) {
			chosen = append(chosen, op)
			continue
		}
		others = append(others, op)
		at = append(at, i)
	}
	return chosen, others, at
}

// deletionsCanWait reports whether no chain is made after it is deleted.
func deletionsCanWait(ops []rules.Op) bool {
	deleted := make(map[rules.ChainID]bool)
	for i := range ops {
		switch id := ops[i].Place.Chain; ops[i].Verb {
		case rules.DeleteChain:
			deleted[id] = true
		case rules.AddChain:
			if deleted[id] {
				return false
			}
		}
	}
	return true
}
