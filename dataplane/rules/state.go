package rules

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"strings"

	"github.com/google/nftables/expr"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

// ErrDrift says that the kernel does not hold what State remembers: somebody
// else changed rules of ours. The State is to be made anew.
var ErrDrift = errors.New("rules differ from those that were written")

// State is what the kernel holds of ours: for each rule a checksum of its
// identity and its handle, not its bytes. It changes by Commit after a
// transaction, and by nothing else.
type State struct {
	seed   maphash.Seed
	tables map[Table]struct{}
	chains map[ChainID]*held
	// owners lists the chains in which an owner has rules, Lent ones excepted.
	owners map[party][]ChainID
	// counts are the rules of ours per table, and written how many were made
	// since the listing; rules in base chains are in neither.
	counts, written map[Table]int
}

// party is an owner in one family.
type party struct {
	family model.Family
	owner  string
}

func (p party) compare(o party) int {
	return cmp.Or(cmp.Compare(p.family, o.family), strings.Compare(p.owner, o.owner))
}

// held is one chain that exists.
type held struct {
	kind Kind
	// rules of a Private chain in order. Of another chain those that a listing
	// showed and no owner has claimed yet, of a Lent one also those of others.
	rules []entry
	// jumps are the rules of a Lent chain that jump to a chain of ours as a
	// whole, as they were listed: by handle the name of that chain.
	jumps map[uint64]string
	// blocks of a Shared or Lent chain by owner.
	blocks map[string][]entry
	// claimed says that the owner of a Private chain is known.
	claimed bool
	owner   string
	// kept says that the chain is only emptied, never deleted.
	kept bool
}

// entry is one rule: its checksum, and its handle or 0 if that is not known.
type entry struct {
	sum    uint64
	handle uint64
}

// Classify tells the kind of a chain of ours; false for a chain that is none
// of our business.
type Classify func(ChainID) (Kind, bool)

// NewState makes the State of a kernel that was listed. Chains that classify
// does not know are left out.
func NewState(chains []ListedChain, classify Classify) *State {
	s := &State{
		seed:   maphash.MakeSeed(),
		tables: map[Table]struct{}{},
		chains: map[ChainID]*held{},
		owners: map[party][]ChainID{},
		counts: map[Table]int{}, written: map[Table]int{},
	}
	for _, c := range chains {
		s.tables[c.ID.Table] = struct{}{}
		kind, ok := classify(c.ID)
		if !ok {
			continue
		}
		h := &held{kind: kind}
		for _, r := range c.Rules {
			h.rules = append(h.rules, entry{sum: s.sum(r.Exprs), handle: r.Handle})
		}
		if kind == Lent {
			h.jumps = jumpsToOurs(c, classify)
		}
		s.chains[c.ID] = h
		if kind != Lent {
			s.counts[c.ID.Table] += len(h.rules)
		}
	}
	return s
}

// Keep says which of the Private chains cannot be deleted: once nobody wants
// them, they are emptied.
func (s *State) Keep(ids map[ChainID]struct{}) {
	for id := range ids {
		if h := s.chains[id]; h != nil {
			h.kept = true
		}
	}
}

// sum is the checksum of a rule's identity. One that cannot be read equals no
// rule of ours, so that it is replaced.
func (s *State) sum(exprs []byte) uint64 {
	canonical, err := Canonical(nil, exprs)
	if err != nil {
		canonical = exprs
	}
	return maphash.Bytes(s.seed, canonical)
}

// jumpsToOurs returns, by handle, which chains that are ours as a whole the
// rules of a chain jump to.
func jumpsToOurs(c ListedChain, classify Classify) map[uint64]string {
	jumps := map[uint64]string{}
	for _, r := range c.Rules {
		to := destination(c.ID.Table, r.Exprs)
		if to == "" {
			continue
		}
		if kind, ours := classify(ChainID{c.ID.Table, to}); ours && kind != Lent {
			jumps[r.Handle] = to
		}
	}
	return jumps
}

// destination is the chain that a rule jumps to; "" for none, or if the rule
// cannot be read.
func destination(t Table, exprs []byte) string {
	decoded, err := Decode(t.Family, exprs)
	if err != nil {
		return ""
	}
	for _, e := range decoded {
		if v, ok := e.(*expr.Verdict); ok && v.Chain != "" {
			return v.Chain
		}
	}
	return ""
}

// learn fills in the handles of a chain from a listing of it, which must show
// the rules that State remembers.
func (s *State) learn(h *held, c ListedChain) error {
	unseen := map[uint64][]*entry{}
	for _, run := range h.runs() {
		for i := range run {
			unseen[run[i].sum] = append(unseen[run[i].sum], &run[i])
		}
	}
	for _, r := range c.Rules {
		sum := s.sum(r.Exprs)
		if same := unseen[sum]; len(same) > 0 {
			same[0].handle = r.Handle
			unseen[sum] = same[1:]
		}
	}
	for _, missing := range unseen {
		if len(missing) > 0 {
			return fmt.Errorf("%s: %w", c.ID, ErrDrift)
		}
	}
	return nil
}

// runs yields all entries of the chain, as slices that may be written to.
func (h *held) runs() [][]entry {
	all := [][]entry{h.rules}
	for _, b := range h.blocks {
		all = append(all, b)
	}
	return all
}

// Sentinels are the chains that everything of ours passes through and that are
// short enough to be listed often.
func (s *State) Sentinels() []ChainID {
	var ids []ChainID
	for id, h := range s.chains {
		switch {
		case h.kind == Lent && h.blocks != nil,
			h.kind == Private && h.claimed && h.owner == Frame,
			h.kind == Shared && h.len() <= sentinelRules:
			ids = append(ids, id)
		}
	}
	return ids
}

// sentinelRules is how long a Shared chain may be to be listed often: 2,000
// rules take some 5 ms.
const sentinelRules = 2000

func (h *held) len() int {
	n := 0
	for _, run := range h.runs() {
		n += len(run)
	}
	return n
}

// Verify compares a listing with what State remembers of the chain. It returns
// ErrDrift if a rule is missing.
func (s *State) Verify(c ListedChain) error { return s.learn(s.chains[c.ID], c) }

// Rules returns the number of rules of ours per table. What is in base chains,
// the jumps to all others, is not counted.
func (s *State) Rules() map[Table]int { return maps.Clone(s.counts) }

// Written returns how many of such rules were written since NewState.
func (s *State) Written() map[Table]int { return maps.Clone(s.written) }
