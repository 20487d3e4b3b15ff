package rules

// claims finds the owners of rules that a listing showed: the kernel does not
// know owners, but what an owner wants it will recognise.
type claims struct {
	chains map[ChainID]struct{}
	rules  map[ChainID]map[int]struct{}
	index  map[ChainID]map[uint64][]int
}

func newClaims() claims {
	return claims{
		chains: map[ChainID]struct{}{},
		rules:  map[ChainID]map[int]struct{}{},
		index:  map[ChainID]map[uint64][]int{},
	}
}

func (c claims) has(id ChainID, i int) bool { return has(c.rules[id], i) }

func (c claims) take(id ChainID, i int) {
	if c.rules[id] == nil {
		c.rules[id] = map[int]struct{}{}
	}
	c.rules[id][i] = struct{}{}
}

// block returns the loose rules of a Shared chain that are want, as far as they
// stand in its order, and claims them.
func (c claims) block(id ChainID, loose []entry, want []coded) []entry {
	index := c.indexOf(id, loose)
	var found []entry
	last := -1
	for _, w := range want {
		for _, i := range index[w.sum] {
			if i > last && !c.has(id, i) {
				c.take(id, i)
				found = append(found, loose[i])
				last = i
				break
			}
		}
	}
	return found
}

// tail returns the loose rules of a Shared chain that are want if they are the
// chain's last, and claims them.
func (c claims) tail(id ChainID, loose []entry, want []coded) []entry {
	first := len(loose) - len(want)
	if first < 0 {
		return nil
	}
	for i, w := range want {
		if loose[first+i].sum != w.sum || c.has(id, first+i) {
			return nil
		}
	}
	for i := range want {
		c.take(id, first+i)
	}
	return loose[first:]
}

func (c claims) indexOf(id ChainID, loose []entry) map[uint64][]int {
	index, ok := c.index[id]
	if !ok {
		index = make(map[uint64][]int, len(loose))
		for i, e := range loose {
			index[e.sum] = append(index[e.sum], i)
		}
		c.index[id] = index
	}
	return index
}
