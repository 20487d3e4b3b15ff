package rules

import "fmt"

// coded is a wanted rule, encoded.
type coded struct {
	sum   uint64
	exprs []byte
	proto uint8
}

// block finds the difference in what owner has in one chain; false if there is
// none and State knows it already.
func (r *Round) block(b Block, owner string) (Edit, bool) {
	want, err := r.encode(b, owner)
	if err != nil {
		r.err = err
		return Edit{}, false
	}
	e := Edit{id: b.Chain.ID, kind: b.Chain.Kind, base: b.Chain.Hook != nil, owner: owner}
	if b.Chain.Kind == Lent {
		return e, r.anchors(&e, want)
	}
	old, known := r.old(b.Chain, owner, want)
	if known && same(old, want) {
		return Edit{}, false
	}
	r.sequence(&e, old, want)
	return e, true
}

func (r *Round) encode(b Block, owner string) ([]coded, error) {
	want := make([]coded, len(b.Rules))
	for i, rule := range b.Rules {
		exprs, err := Encode(b.Chain.ID.Table.Family, rule.Exprs)
		if err != nil {
			return nil, fmt.Errorf("%s: encode: %w", Place{owner, b.Chain.ID, i}, err)
		}
		want[i] = coded{r.state.sum(exprs), exprs, rule.Proto}
	}
	return want, nil
}

// old returns what owner has in the chain; known is false if that is a first
// guess after a listing, which State has yet to be told.
func (r *Round) old(c Chain, owner string, want []coded) (old []entry, known bool) {
	h := r.state.chains[c.ID]
	switch {
	case h == nil:
		return nil, false
	case c.Kind == Private:
		if !h.claimed {
			r.claims.chains[c.ID] = struct{}{}
		}
		return h.rules, h.claimed
	}
	if block, ok := h.blocks[owner]; ok {
		return block, true
	}
	if owner == Frame {
		return r.claims.tail(c.ID, h.rules, want), false
	}
	return r.claims.block(c.ID, h.rules, want), false
}

func same(old []entry, want []coded) bool {
	return len(old) == len(want) && prefix(old, want) == len(want)
}

// prefix returns how many rules are the same at the start.
func prefix(old []entry, want []coded) int {
	n := 0
	for n < min(len(old), len(want)) && old[n].sum == want[n].sum {
		n++
	}
	return n
}

// suffix returns how many rules are the same at the end.
func suffix(old []entry, want []coded) int {
	n := 0
	for n < min(len(old), len(want)) && old[len(old)-1-n].sum == want[len(want)-1-n].sum {
		n++
	}
	return n
}

// sequence turns old into want: what is the same at both ends stays, and what
// is between is replaced in place as far as it goes, the rest deleted or put in.
func (r *Round) sequence(e *Edit, old []entry, want []coded) {
	head := prefix(old, want)
	tail := suffix(old[head:], want[head:])
	midOld, midWant := old[head:len(old)-tail], want[head:len(want)-tail]
	replaced := min(len(midOld), len(midWant))

	e.slots = make([]slot, len(want))
	for i := range head {
		e.slots[i] = slot{old[i], -1}
	}
	for i := range tail {
		e.slots[len(want)-1-i] = slot{old[len(old)-1-i], -1}
	}
	r.putIn(e, old, tail, midWant[replaced:], head+replaced)
	for i := range replaced {
		e.slots[head+i] = r.emit(e, Replace, r.handle(e.id, &midOld[i]), midWant[i], head+i)
	}
	for i := replaced; i < len(midOld); i++ {
		place := Place{e.owner, e.id, -1}
		e.Ops = append(e.Ops, Op{Verb: Delete, Place: place, Handle: r.handle(e.id, &midOld[i])})
	}
}

// putIn adds rules, of which the first gets index at, before the last tail
// rules of old. Without such it appends where nobody else's rules can be
// behind ours, else stays behind the owner's last rule, else goes to the front:
// blocks of other owners are in no order against ours.
func (r *Round) putIn(e *Edit, old []entry, tail int, want []coded, at int) {
	verb, handle, backwards := Prepend, uint64(0), true
	switch {
	case len(want) == 0:
		return
	case tail > 0:
		verb, handle, backwards = InsertBefore, r.handle(e.id, &old[len(old)-tail]), false
	case e.kind == Private || e.owner == Frame:
		verb, backwards = Append, false
	case len(old) > 0:
		verb, handle = InsertAfter, r.handle(e.id, &old[len(old)-1])
	}
	for i := range want {
		if backwards {
			i = len(want) - 1 - i
		}
		e.slots[at+i] = r.emit(e, verb, handle, want[i], at+i)
	}
}

// anchors puts in front what a Lent chain lacks; false if that is nothing and
// State knows it already.
func (r *Round) anchors(e *Edit, want []coded) bool {
	var old []entry
	known := false
	if h := r.state.chains[e.id]; h != nil {
		old, known = h.blocks[e.owner]
		if !known {
			old = h.rules
		}
	}
	have := map[uint64]entry{}
	for _, o := range old {
		have[o.sum] = o
	}
	e.slots = make([]slot, len(want))
	for i := len(want) - 1; i >= 0; i-- {
		if o, ok := have[want[i].sum]; ok {
			e.slots[i] = slot{o, -1}
			continue
		}
		e.slots[i] = r.emit(e, Prepend, 0, want[i], i)
	}
	return !known || len(e.Ops) > 0
}

// emit adds the operation that makes the owner's rule number index, and returns
// the slot for it.
func (r *Round) emit(e *Edit, v Verb, handle uint64, w coded, index int) slot {
	e.Ops = append(e.Ops, Op{
		Verb: v, Place: Place{e.owner, e.id, index},
		Exprs: w.exprs, Proto: w.proto, Handle: handle,
	})
	return slot{entry{sum: w.sum}, len(e.Ops) - 1}
}

// handle returns the handle of a rule, which it looks up if need be.
func (r *Round) handle(id ChainID, e *entry) uint64 {
	if e.handle == 0 && r.err == nil {
		listed, err := r.list(id)
		if err == nil {
			err = r.state.learn(r.state.chains[id], listed)
		}
		if err != nil {
			r.err = fmt.Errorf("list %s: %w", id, err)
		}
	}
	return e.handle
}
