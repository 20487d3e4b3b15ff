package legacy

import (
	"slices"

	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/rules"
)

// owner is whose a chain is.
type owner uint8

const (
	// foreign chains stay as they are.
	foreign owner = iota
	// lent chains are others', with jumps to chains of ours in them, which go.
	// The base chains are such.
	lent
	// ours go.
	ours
	// held chains are ours too, but rules of foreign chains jump to them. They
	// are emptied.
	held
)

// edit is what becomes of a table.
type edit struct {
	*table
	owners []owner // by chain
	// moved is by entry the offset of what is kept of the table up to it; the
	// size of what is kept ends it.
	moved []uint32
	kept  uint32 // entries
}

// edit takes all leftovers from the table, whose name is id.
func (t *table) edit(id rules.Table) edit {
	e := edit{table: t, owners: make([]owner, len(t.chains)), moved: make([]uint32, 0, len(t.entries)+1)}
	for i, c := range t.chains {
		e.owners[i] = ownerOf(rules.ChainID{Table: id, Name: c.name})
	}
	e.hold()
	size := uint32(0)
	for i := range t.entries {
		e.moved = append(e.moved, size)
		if e.keeps(i) {
			size += uint32(len(t.of(i)))
			e.kept++
		}
	}
	e.moved = append(e.moved, size)
	return e
}

func ownerOf(id rules.ChainID) owner {
	switch kind, ok := iptables.Leftover(id); {
	case !ok:
		return foreign
	case kind == rules.Lent:
		return lent
	}
	return ours
}

// hold finds the chains that have to stay.
func (e *edit) hold() {
	for i := range e.entries {
		if to := e.destination(i); to != base && e.owners[to] == ours && e.ownerOf(i) == foreign {
			e.owners[to] = held
		}
	}
}

// destination is the chain that an entry jumps to; base for one that jumps to
// none.
func (e *edit) destination(i int) int {
	if !e.entries[i].jumps() {
		return base
	}
	return e.entries[e.at(uint32(e.entries[i].verdict))].chain
}

// ownerOf is whose chain an entry is in.
func (e *edit) ownerOf(i int) owner {
	if c := e.entries[i].chain; c != base {
		return e.owners[c]
	}
	return lent
}

func (e *edit) keeps(i int) bool {
	switch e.ownerOf(i) {
	case ours:
		return false
	case held:
		return !e.isRule(i)
	case lent:
		to := e.destination(i)
		return to == base || e.owners[to] < ours
	}
	return true
}

// isRule reports whether an entry neither begins nor ends a chain of its own.
func (e *edit) isRule(i int) bool {
	c := e.entries[i].chain
	return c == base || i != e.chains[c].first && i != e.chains[c].last
}

// stays reports whether the entry with that index stays.
func (e *edit) stays(i int) bool { return e.moved[i+1] > e.moved[i] }

// isEmpty reports whether nothing goes.
func (e *edit) isEmpty() bool { return int(e.kept) == len(e.entries) }

// removed says what goes.
func (e *edit) removed(id rules.Table) Removed {
	r := Removed{Table: id}
	for i := range e.entries {
		if !e.stays(i) && e.isRule(i) {
			r.Rules++
		}
	}
	for i, c := range e.chains {
		switch e.owners[i] {
		case ours:
			r.Chains = append(r.Chains, c.name)
		case held:
			r.Emptied = append(r.Emptied, c.name)
		}
	}
	slices.Sort(r.Chains)
	slices.Sort(r.Emptied)
	r.Dropping = e.dropping()
	return r
}

// dropping are the base chains that drop what no rule accepts, and from which
// rules go.
func (e *edit) dropping() (names []string) {
	for hook, name := range hookNames {
		if !e.info.has(hook) {
			continue
		}
		first, policy := e.at(e.info.entry[hook]), e.at(e.info.underflow[hook])
		shrinks := int(e.moved[policy]-e.moved[first]) < e.entries[policy].offset-e.entries[first].offset
		if shrinks && e.entries[policy].verdict == dropped {
			names = append(names, name)
		}
	}
	return names
}

// marshal returns the table as it is to be. What led to an entry that goes
// leads to the next one that stays: from the beginning of a base chain to its
// first rule, from a rule without a target to the one after it, from a jump to
// an emptied chain to its end.
func (e *edit) marshal() (info, []byte) {
	i := e.info
	i.entries, i.size = e.kept, e.moved[len(e.entries)]
	b := make([]byte, 0, i.size)
	for n := range e.entries {
		if !e.stays(n) {
			continue
		}
		b = append(b, e.of(n)...)
		if to := e.entries[n]; to.jumps() {
			e.layout.setVerdict(b[e.moved[n]:], verdict(e.move(uint32(to.verdict))))
		}
	}
	for hook := range hookNames {
		if i.has(hook) {
			i.entry[hook], i.underflow[hook] = e.move(i.entry[hook]), e.move(i.underflow[hook])
		}
	}
	return i, b
}

// move is where an offset is to be.
func (e *edit) move(offset uint32) uint32 { return e.moved[e.at(offset)] }

// counters are those of the entries that stay, out of those of all entries.
func (e *edit) counters(all []byte) []byte {
	b := make([]byte, 0, e.kept*countersSize)
	for i := range e.entries {
		if e.stays(i) {
			b = append(b, all[i*countersSize:(i+1)*countersSize]...)
		}
	}
	return b
}
