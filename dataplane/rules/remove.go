package rules

import (
	"maps"
	"slices"
)

// Remove returns the edits that leave nothing of ours: every anchor that jumps
// to a chain of ours goes, and then those chains. Lent chains stay, and all in
// them that jumps elsewhere.
func (s *State) Remove() []Edit {
	var anchors, flushes, deletes []Edit
	for _, id := range s.sorted() {
		h := s.chains[id]
		if h.kind == Lent {
			anchors = append(anchors, unhook(id, h, func(string) bool { return true }))
			continue
		}
		flushes = append(flushes, Edit{id: id, effect: flushesChain, Ops: []Op{chainOp(Flush, id)}})
		deletes = append(deletes, Edit{id: id, effect: deletesChain, Ops: []Op{chainOp(DeleteChain, id)}})
	}
	return slices.Concat(anchors, flushes, deletes)
}

func (s *State) sorted() []ChainID {
	ids := make([]ChainID, 0, len(s.chains))
	for id := range s.chains {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, ChainID.compare)
	return ids
}

// unhook deletes the rules of a Lent chain that jump to those chains of ours.
func unhook(id ChainID, h *held, to func(chain string) bool) Edit {
	e := Edit{id: id, kind: Lent, effect: unhooks}
	for _, handle := range slices.Sorted(maps.Keys(h.jumps)) {
		if to(h.jumps[handle]) {
			e.Ops = append(e.Ops, Op{Verb: Delete, Place: Place{Frame, id, -1}, Handle: handle})
		}
	}
	return e
}
