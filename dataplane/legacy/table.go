package legacy

import (
	"errors"
	"fmt"
	"slices"
)

// base stands for the base chains where the index of a chain is asked for.
const base = -1

// table is all that the kernel holds in one table: the base chains, each with
// its policy, then the other chains, and an entry that ends the table.
type table struct {
	layout layout
	info   info
	// bytes are the entries as the kernel gave them: what it takes back.
	bytes   []byte
	entries []entry
	chains  []chain
}

// chain is one that is no base chain: a beginning that no packet reaches, the
// rules, and a return.
type chain struct {
	name string
	// first is the index of the entry that begins it, last of that which ends
	// it.
	first, last int
}

// unmarshalTable reads the entries of a table, which hold i.size bytes. It
// refuses what iptables-legacy would not write.
func unmarshalTable(l layout, i info, b []byte) (t *table, err error) {
	t = &table{layout: l, info: i, bytes: b}
	t.entries = make([]entry, 0, min(int(i.entries), len(b)/l.size))
	for at := 0; at < len(b); {
		e, size, err := l.unmarshalEntry(b, at)
		if err != nil {
			return nil, err
		}
		t.add(e)
		at += size
	}
	if len(t.entries) != int(i.entries) {
		return nil, fmt.Errorf("%d entries, the kernel speaks of %d", len(t.entries), i.entries)
	}
	return t, t.check()
}

// add adds the next entry to the chain that it begins or belongs to.
func (t *table) add(e entry) {
	if e.kind == failure {
		t.chains = append(t.chains, chain{name: e.name, first: len(t.entries)})
	}
	e.chain = len(t.chains) - 1
	if e.chain != base {
		t.chains[e.chain].last = len(t.entries)
	}
	t.entries = append(t.entries, e)
}

// check takes the end of the table from the chains, as one of which it was
// read, and refuses a table that is not as described at table and chain.
func (t *table) check() error {
	end := len(t.chains) - 1
	if end < 0 || t.chains[end].first != len(t.entries)-1 {
		return errors.New("table does not end as tables do")
	}
	t.chains = t.chains[:end]
	t.entries[len(t.entries)-1].chain = base
	for _, c := range t.chains {
		if last := t.entries[c.last]; last.kind != standard || last.verdict != returned {
			return fmt.Errorf("chain %s does not end with a return", c.name)
		}
	}
	for _, e := range t.entries {
		if e.jumps() && t.at(uint32(e.verdict)) < 0 {
			return fmt.Errorf("entry at %d: jumps to %d, where none begins", e.offset, e.verdict)
		}
	}
	return t.checkHooks()
}

func (t *table) checkHooks() error {
	for hook, name := range hookNames {
		if !t.info.has(hook) {
			continue
		}
		first, policy := t.at(t.info.entry[hook]), t.at(t.info.underflow[hook])
		if first < 0 || policy < first || !t.isPolicy(policy) {
			return fmt.Errorf("base chain %s is from %d to %d", name, t.info.entry[hook], t.info.underflow[hook])
		}
	}
	return nil
}

// isPolicy reports whether an entry may end a base chain.
func (t *table) isPolicy(i int) bool {
	e := t.entries[i]
	return e.chain == base && e.kind == standard && e.verdict < 0
}

// at is the index of the entry that begins at offset; negative if none does.
func (t *table) at(offset uint32) int {
	i, ok := slices.BinarySearchFunc(t.entries, int(offset), func(e entry, o int) int { return e.offset - o })
	if !ok {
		return -1
	}
	return i
}

// of returns the bytes of the entry with that index.
func (t *table) of(i int) []byte {
	end := len(t.bytes)
	if i+1 < len(t.entries) {
		end = t.entries[i+1].offset
	}
	return t.bytes[t.entries[i].offset:end]
}
