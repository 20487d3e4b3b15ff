package rules

import "slices"

// Commit notes that the kernel has carried out an edit. handles are those of
// its operations, 0 where one is not known.
func (s *State) Commit(e Edit, handles []uint64) {
	for _, op := range e.Ops {
		s.count(op)
		if op.Verb.MakesRule() && !e.base {
			s.written[e.id.Table]++
		}
	}
	switch e.effect {
	case addsTable:
		s.tables[e.id.Table] = struct{}{}
	case addsChain:
		s.chains[e.id] = &held{kind: e.kind}
	case clearsLoose:
		s.chains[e.id].rules = nil
	case unhooks:
		for _, op := range e.Ops {
			delete(s.chains[e.id].jumps, op.Handle)
		}
	case flushesChain:
		s.chains[e.id].rules = nil
	case deletesChain:
		s.forget(e.id)
	case setsBlock:
		s.setBlock(e, handles)
	}
}

func (s *State) count(op Op) {
	id := op.Place.Chain
	h := s.chains[id]
	switch {
	case h == nil || h.kind == Lent:
	case op.Verb == Delete:
		s.counts[id.Table]--
	case op.Verb == Flush:
		s.counts[id.Table] -= len(h.rules)
	case op.Verb.MakesRule() && op.Verb != Replace:
		s.counts[id.Table]++
	}
}

func (s *State) setBlock(e Edit, handles []uint64) {
	rules := e.rules(handles)
	h := s.chains[e.id]
	switch e.kind {
	case Lent:
		if !e.base { // which were not told from those of others before
			s.counts[e.id.Table] += len(rules) - len(h.blocks[e.owner])
		}
		h.rules = nil
		h.set(e.owner, rules)
	case Private:
		if !h.claimed {
			s.own(e.owner, e.id)
		}
		h.rules, h.claimed, h.owner = rules, true, e.owner
	case Shared:
		s.setShared(h, e, rules)
	}
}

func (s *State) setShared(h *held, e Edit, rules []entry) {
	_, had := h.blocks[e.owner]
	switch {
	case len(rules) == 0 && had:
		delete(h.blocks, e.owner)
		s.disown(e.owner, e.id)
	case len(rules) > 0 && !had:
		s.own(e.owner, e.id)
	}
	if len(rules) > 0 {
		h.set(e.owner, rules)
	}
}

func (h *held) set(owner string, rules []entry) {
	if h.blocks == nil {
		h.blocks = map[string][]entry{}
	}
	h.blocks[owner] = rules
}

// rules returns what the edit leaves in its block.
func (e Edit) rules(handles []uint64) []entry {
	rules := make([]entry, len(e.slots))
	for i, slot := range e.slots {
		if slot.op >= 0 && slot.op < len(handles) {
			slot.handle = handles[slot.op]
		}
		rules[i] = slot.entry
	}
	return rules
}

func (s *State) own(owner string, id ChainID) {
	who := party{id.Table.Family, owner}
	s.owners[who] = append(s.owners[who], id)
}

func (s *State) disown(owner string, id ChainID) {
	who := party{id.Table.Family, owner}
	left := slices.DeleteFunc(s.owners[who], func(c ChainID) bool { return c == id })
	if len(left) == 0 {
		delete(s.owners, who)
		return
	}
	s.owners[who] = left
}

// forget drops a chain that was deleted, from its owner's list too.
func (s *State) forget(id ChainID) {
	if h := s.chains[id]; h != nil && h.claimed {
		s.disown(h.owner, id)
	}
	delete(s.chains, id)
}
