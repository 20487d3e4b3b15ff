package rules

import (
	"fmt"
	"iter"
)

// Layout puts parts into chains as they are in a kernel that holds nothing
// else, for printing: without handles, chains in the order in which they were
// first mentioned, and the block of Frame last in a Shared chain.
func Layout(parts iter.Seq[Part]) ([]ListedChain, error) {
	l := layout{index: map[ChainID]int{}, tails: map[int][]Listed{}}
	for p := range parts {
		for _, b := range p.Blocks {
			if err := l.add(p.Owner, b); err != nil {
				return nil, err
			}
		}
	}
	for i, tail := range l.tails {
		l.chains[i].Rules = append(l.chains[i].Rules, tail...)
	}
	return l.chains, nil
}

type layout struct {
	chains []ListedChain
	index  map[ChainID]int
	tails  map[int][]Listed
}

func (l *layout) add(owner string, b Block) error {
	i, ok := l.index[b.Chain.ID]
	if !ok {
		i = len(l.chains)
		l.index[b.Chain.ID] = i
		l.chains = append(l.chains, ListedChain{ID: b.Chain.ID, Hook: b.Chain.Hook})
	}
	for n, r := range b.Rules {
		exprs, err := Encode(b.Chain.ID.Table.Family, r.Exprs)
		if err != nil {
			return fmt.Errorf("%s: %w", Place{owner, b.Chain.ID, n}, err)
		}
		if owner == Frame && b.Chain.Kind == Shared {
			l.tails[i] = append(l.tails[i], Listed{Exprs: exprs})
			continue
		}
		l.chains[i].Rules = append(l.chains[i].Rules, Listed{Exprs: exprs})
	}
	return nil
}
