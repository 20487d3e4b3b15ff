package rules

import "slices"

// Remove returns the edits that leave nothing of ours: every anchor that jumps
// to a chain of ours goes, and then those chains. Lent chains stay, and all in
// them that jumps elsewhere.
func (s *State) Remove() []Edit {
	var anchors, flushes, deletes []Edit
	for _, id := range s.sorted() {
		h := s.chains[id]
		if h.kind == Lent {
			anchors = append(anchors, unhook(id, h))
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

func unhook(id ChainID, h *held) Edit {
	e := Edit{id: id, kind: Lent}
	for _, rule := range h.rules {
		if rule.ours {
			e.Ops = append(e.Ops, Op{Verb: Delete, Place: Place{Frame, id, -1}, Handle: rule.handle})
		}
	}
	return e
}
