package rules

import "slices"

// Lister lists one chain as the kernel has it.
type Lister func(ChainID) (ListedChain, error)

// Edit is the difference in one block or chain: operations that belong into
// one transaction, and what the State is once they are done.
type Edit struct {
	Ops []Op

	id     ChainID
	kind   Kind
	base   bool // the chain is a base chain
	owner  string
	slots  []slot
	effect effect
}

type effect uint8

const (
	setsBlock effect = iota
	addsTable
	addsChain
	clearsLoose
	unhooks
	flushesChain
	deletesChain
)

// slot is one rule after an Edit: kept with its handle, or made by Ops[op].
type slot struct {
	entry
	op int // -1 for kept
}

// Round finds the difference between a State and what owners want. Parts are
// added one by one; Add returns edits that may be sent at once, since nothing
// reaches what they make, and Finish the rest. Edits are committed to the
// State in the order in which they were returned, and may be cut into
// transactions between any two.
//
// A Round remembers its first error and does nothing after it.
type Round struct {
	state *State
	all   bool
	list  Lister
	err   error

	made   map[ChainID]struct{}
	tables map[Table]struct{}
	// wanted are the owners that were added.
	wanted map[party]struct{}
	// claims are the rules and chains of the listing that owners were found for.
	claims claims
	// What Finish returns, in this order.
	shared, tails, lent, loose, unhooked []Edit
	gone                                 []ChainID
}

// Round begins a round. With all, the parts that are added are all there are:
// owners that are not among them lose what they have, and so does nobody.
// The lister is asked for the handles of rules that were made in bulk.
func (s *State) Round(all bool, list Lister) *Round {
	return &Round{
		state: s, all: all, list: list,
		made:   map[ChainID]struct{}{},
		tables: map[Table]struct{}{},
		wanted: map[party]struct{}{},
		claims: newClaims(),
	}
}

// Err returns the first error of the round.
func (r *Round) Err() error { return r.err }

// Add takes what one owner wants. Frame has to come first if it comes at all.
// A part without blocks removes all that its owner has.
func (r *Round) Add(p Part) []Edit {
	if r.err != nil {
		return nil
	}
	r.wanted[party{p.Family, p.Owner}] = struct{}{}
	var ready []Edit
	for _, b := range p.Blocks {
		ready = append(ready, r.ensure(b.Chain, p.Owner)...)
		if e, changed := r.block(b, p.Owner); changed {
			ready = append(ready, r.later(e)...)
		}
	}
	r.drop(p)
	return ready
}

// later keeps the edit for Finish unless nothing can reach its chain yet.
func (r *Round) later(e Edit) []Edit {
	switch {
	case e.kind == Private:
		return []Edit{e}
	case e.kind == Lent:
		r.lent = append(r.lent, e)
	case e.owner == Frame:
		r.tails = append(r.tails, e)
	default:
		r.shared = append(r.shared, e)
	}
	return nil
}

// Finish returns the edits that make everything reachable, and then those that
// remove what nothing reaches any more.
func (r *Round) Finish() []Edit {
	if r.err != nil {
		return nil
	}
	if r.all {
		r.dropOthers()
	}
	edits := slices.Concat(r.shared, r.tails, r.lent, r.loose, r.unhooked)
	for _, id := range r.gone {
		if h := r.state.chains[id]; !h.kept || len(h.rules) > 0 {
			edits = append(edits, Edit{id: id, effect: flushesChain, Ops: []Op{chainOp(Flush, id)}})
		}
	}
	for _, id := range r.gone {
		if !r.state.chains[id].kept {
			edits = append(edits, Edit{id: id, effect: deletesChain, Ops: []Op{chainOp(DeleteChain, id)}})
		}
	}
	if r.err != nil {
		return nil
	}
	return edits
}

func chainOp(v Verb, id ChainID) Op { return Op{Verb: v, Place: Place{Chain: id, Index: -1}} }

// ensure makes the chain and its table where they are missing.
func (r *Round) ensure(c Chain, owner string) []Edit {
	var edits []Edit
	t := c.ID.Table
	if !has(r.state.tables, t) && !has(r.tables, t) {
		r.tables[t] = struct{}{}
		edits = append(edits, Edit{id: ChainID{Table: t}, effect: addsTable, Ops: []Op{chainOp(AddTable, ChainID{Table: t})}})
	}
	if r.state.chains[c.ID] == nil && !has(r.made, c.ID) {
		r.made[c.ID] = struct{}{}
		op := Op{Verb: AddChain, Place: Place{owner, c.ID, -1}, Hook: c.Hook}
		edits = append(edits, Edit{id: c.ID, kind: c.Kind, owner: owner, effect: addsChain, Ops: []Op{op}})
	}
	return edits
}

func has[K comparable](set map[K]struct{}, k K) bool {
	_, ok := set[k]
	return ok
}

// drop removes what the owner of p has outside the blocks of p.
func (r *Round) drop(p Part) {
	has := r.state.owners[party{p.Family, p.Owner}]
	if len(has) == 0 {
		return
	}
	wants := make(map[ChainID]struct{}, len(p.Blocks))
	for _, b := range p.Blocks {
		wants[b.Chain.ID] = struct{}{}
	}
	for _, id := range has {
		if _, stays := wants[id]; !stays {
			r.dropBlock(id, p.Owner)
		}
	}
}

func (r *Round) dropBlock(id ChainID, owner string) {
	if r.state.chains[id].kind == Private {
		r.gone = append(r.gone, id)
		return
	}
	if e, changed := r.block(Block{Chain: Chain{ID: id, Kind: Shared}}, owner); changed {
		r.later(e)
	}
}

// dropOthers removes what belongs to owners that were not added, and what
// belongs to nobody, with the jumps to it from Lent chains.
func (r *Round) dropOthers() {
	for _, who := range r.unwanted() {
		r.drop(Part{Family: who.family, Owner: who.owner})
	}
	nobodys := map[ChainID]struct{}{}
	for id, h := range r.state.chains {
		switch {
		case h.kind == Private && !h.claimed && !has(r.claims.chains, id) && !has(r.made, id):
			nobodys[id] = struct{}{}
			r.gone = append(r.gone, id)
		case h.kind == Shared:
			r.clearLoose(id, h)
		}
	}
	slices.SortFunc(r.gone, ChainID.compare)
	sortEdits(r.loose)
	r.unhook(nobodys)
}

// unwanted are the owners that were not added, sorted.
func (r *Round) unwanted() (all []party) {
	for who := range r.state.owners {
		if !has(r.wanted, who) {
			all = append(all, who)
		}
	}
	slices.SortFunc(all, party.compare)
	return all
}

// unhook deletes the jumps from Lent chains to chains.
func (r *Round) unhook(chains map[ChainID]struct{}) {
	for id, h := range r.state.chains {
		e := unhook(id, h, func(chain string) bool { return has(chains, ChainID{id.Table, chain}) })
		if len(e.Ops) > 0 {
			r.unhooked = append(r.unhooked, e)
		}
	}
	sortEdits(r.unhooked)
}

func sortEdits(edits []Edit) {
	slices.SortFunc(edits, func(a, b Edit) int { return a.id.compare(b.id) })
}

func (r *Round) clearLoose(id ChainID, h *held) {
	e := Edit{id: id, kind: Shared, effect: clearsLoose}
	for i, old := range h.rules {
		if !r.claims.has(id, i) {
			e.Ops = append(e.Ops, Op{Verb: Delete, Place: Place{Frame, id, -1}, Handle: old.handle})
		}
	}
	if len(h.rules) > 0 {
		r.loose = append(r.loose, e)
	}
}
