package rules

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables/expr"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

var nat = Table{model.IPv4, "nat"}

// kindOf is the Classify of these tests: the first letter of a chain's name.
func kindOf(id ChainID) (Kind, bool) {
	switch id.Name[0] {
	case 'P':
		return Private, true
	case 'S':
		return Shared, true
	case 'L':
		return Lent, true
	}
	return 0, false
}

func chainNamed(name string) Chain {
	id := ChainID{nat, name}
	kind, _ := kindOf(id)
	return Chain{ID: id, Kind: kind}
}

// numbered is a rule that differs from those of other numbers.
func numbered(n int) Rule {
	return Rule{Exprs: []expr.Any{&expr.Immediate{Register: 1, Data: []byte{byte(n), byte(n >> 8), 0, 0}}}}
}

func jump(to string) Rule {
	return Rule{Exprs: []expr.Any{&expr.Verdict{Kind: expr.VerdictJump, Chain: to}}}
}

func block(chain string, rules ...Rule) Block { return Block{chainNamed(chain), rules} }

// node is a kernel and what is remembered of it.
type node struct {
	t      *testing.T
	kernel *fakeKernel
	state  *State
}

func newNode(t *testing.T) *node {
	n := &node{t: t, kernel: newFakeKernel()}
	n.relist()
	return n
}

func (n *node) relist() { n.state = NewState(n.kernel.listAll(), kindOf) }

// set makes the kernel agree with parts and returns how many operations it took.
func (n *node) set(all bool, parts ...Part) int {
	n.t.Helper()
	r := n.state.Round(all, n.kernel.list)
	var edits []Edit
	for _, p := range parts {
		p.Family = model.IPv4
		edits = append(edits, r.Add(p)...)
	}
	edits = append(edits, r.Finish()...)
	if r.Err() != nil {
		n.t.Fatal(r.Err())
	}
	return n.commit(edits, true)
}

// commit carries the edits out one by one; without echo no handle is told.
func (n *node) commit(edits []Edit, echo bool) int {
	n.t.Helper()
	ops := 0
	for _, e := range edits {
		handles, err := n.kernel.apply(e.Ops)
		if err != nil {
			n.t.Fatal(err)
		}
		if !echo {
			handles = nil
		}
		n.state.Commit(e, handles)
		ops += len(e.Ops)
	}
	return ops
}

// show prints a chain's rules: numbers, or the chain that they jump to.
func (n *node) show(chain string) string {
	n.t.Helper()
	rules, ok := n.kernel.chains[ChainID{nat, chain}]
	if !ok {
		return "absent"
	}
	var words []string
	for _, r := range rules {
		exprs, err := Decode(model.IPv4, r.Exprs)
		if err != nil {
			n.t.Fatal(err)
		}
		switch e := exprs[0].(type) {
		case *expr.Immediate:
			words = append(words, fmt.Sprint(int(e.Data[0])|int(e.Data[1])<<8))
		case *expr.Verdict:
			words = append(words, e.Chain)
		}
	}
	return strings.Join(words, " ")
}

func (n *node) want(chain, rules string) {
	n.t.Helper()
	if got := n.show(chain); got != rules {
		n.t.Errorf("%s holds %q, want %q", chain, got, rules)
	}
}

func (n *node) foreign(chain string, rules ...Rule) {
	n.t.Helper()
	place := Place{Chain: ChainID{nat, chain}, Index: -1}
	ops := []Op{{Verb: AddTable, Place: place}, {Verb: AddChain, Place: place}}
	for _, r := range rules {
		exprs, err := Encode(model.IPv4, r.Exprs)
		if err != nil {
			n.t.Fatal(err)
		}
		ops = append(ops, Op{Verb: Append, Place: place, Exprs: exprs})
	}
	if _, err := n.kernel.apply(ops); err != nil {
		n.t.Fatal(err)
	}
}

var frame = Part{Family: model.IPv4, Owner: Frame, Blocks: []Block{
	block("Pmark", numbered(1)),
	block("S", jump("Pmark")),
	{Chain{ID: ChainID{nat, "L"}, Kind: Lent, Hook: &Hook{Type: "nat"}}, []Rule{jump("S")}},
}}

func web(numbers ...int) Part {
	p := Part{Family: model.IPv4, Owner: "default/web", Blocks: []Block{block("Pweb"), block("S", jump("Pweb"))}}
	for _, n := range numbers {
		p.Blocks[0].Rules = append(p.Blocks[0].Rules, numbered(n))
	}
	return p
}

func TestRoundFromNothing(t *testing.T) {
	n := newNode(t)
	n.set(true, frame, web(10, 11))
	n.want("Pweb", "10 11")
	n.want("S", "Pweb Pmark")
	n.want("L", "S")
	if ops := n.set(true, frame, web(10, 11)); ops != 0 {
		t.Errorf("the same again took %d operations", ops)
	}
	n.relist()
	if ops := n.set(true, frame, web(10, 11)); ops != 0 {
		t.Errorf("the same after a listing took %d operations", ops)
	}
	if ops := n.set(false, frame, web(10, 11)); ops != 0 {
		t.Errorf("the same once its owners are known took %d operations", ops)
	}
}

func TestRoundKeepsWhatIsTheSameAtBothEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to []int
		ops      int
	}{
		"replace one":  {[]int{1, 2, 3}, []int{1, 9, 3}, 1},
		"insert":       {[]int{1, 2}, []int{1, 9, 2}, 1},
		"insert two":   {[]int{1, 2}, []int{1, 8, 9, 2}, 2},
		"append":       {[]int{1, 2}, []int{1, 2, 3}, 1},
		"prepend":      {[]int{2, 3}, []int{1, 2, 3}, 1},
		"delete first": {[]int{1, 2, 3}, []int{2, 3}, 1},
		"delete last":  {[]int{1, 2, 3}, []int{1, 2}, 1},
		"delete all":   {[]int{1, 2}, nil, 2},
		"swap":         {[]int{1, 2, 3, 4}, []int{1, 3, 2, 4}, 2},
		"repeated":     {[]int{1, 1}, []int{1, 1, 1}, 1},
		"grow":         {[]int{1, 2}, []int{3, 4, 5}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.set(true, frame, web(tc.from...))
			if ops := n.set(false, web(tc.to...)); ops != tc.ops {
				t.Errorf("took %d operations, want %d", ops, tc.ops)
			}
			n.want("Pweb", strings.Trim(fmt.Sprint(tc.to), "[]"))
		})
	}
}

func TestRoundRemovesWithTheOwner(t *testing.T) {
	n := newNode(t)
	n.set(true, frame, web(10))
	n.set(false, Part{Owner: "default/web"})
	n.want("Pweb", "absent")
	n.want("S", "Pmark")
	if got := n.state.Rules()[nat]; got != 2 {
		t.Errorf("%d rules are counted, want 2", got)
	}
}

// TestStateCountsRulesOfOurs: in a lent chain those that are ours, unless it is a
// base chain, whose rules are but jumps.
func TestStateCountsRulesOfOurs(t *testing.T) {
	n := newNode(t)
	n.foreign("Lkubelet", numbered(7), numbered(8))
	n.relist()
	shared := frame
	shared.Blocks = append(slices.Clone(frame.Blocks), block("Lkubelet", numbered(8), numbered(9)))
	expect := func(what string, total, written int) {
		t.Helper()
		if got := n.state.Rules()[nat]; got != total {
			t.Errorf("%s: %d rules, want %d", what, got, total)
		}
		if got := n.state.Written()[nat]; got != written {
			t.Errorf("%s: %d rules were written, want %d", what, got, written)
		}
	}
	n.set(true, shared, web(10, 11))
	expect("all", 7, 6) // of which the kubelet had one
	n.set(false, web(10, 12))
	expect("one replaced", 7, 7)
	n.set(false, web(10))
	expect("one deleted", 6, 7)
	n.relist()
	n.set(true, shared, web(10))
	expect("all, found there", 6, 0)
}

func TestRoundOfAllRemovesWhoIsNotThere(t *testing.T) {
	n := newNode(t)
	n.set(true, frame, web(10))
	n.set(true, frame)
	n.want("Pweb", "absent")
	n.want("S", "Pmark")
}

func TestRoundTakesOverAndRemovesLeftovers(t *testing.T) {
	n := newNode(t)
	n.foreign("Pold", numbered(66))
	n.foreign("Pweb", numbered(10), numbered(67))
	n.foreign("S", jump("Pold"), jump("Pmark"), jump("Pweb"))
	n.foreign("L", numbered(90), jump("S"), numbered(91))
	n.foreign("Xother", numbered(92))
	n.relist()
	n.set(true, frame, web(10))
	n.want("Pold", "absent")
	n.want("Pweb", "10")
	n.want("S", "Pweb Pmark")
	n.want("L", "90 S 91")
	n.want("Xother", "92")
}

// TestRoundIsNeverWithoutATail: cut anywhere, the old last rule stands until
// the new one does.
func TestRoundIsNeverWithoutATail(t *testing.T) {
	n := newNode(t)
	n.foreign("Pmark", numbered(1))
	n.foreign("S", jump("Pold"), jump("Pold"))
	n.foreign("Pold", numbered(9))
	n.relist()
	r := n.state.Round(true, n.kernel.list)
	for _, e := range slices.Concat(r.Add(frame), r.Finish()) {
		n.commit([]Edit{e}, true)
		if words := strings.Fields(n.show("S")); len(words) == 0 {
			t.Fatal("S is empty")
		}
	}
	n.want("S", "Pmark")
}

func TestAnchorsGoFirstAndForeignRulesStay(t *testing.T) {
	n := newNode(t)
	n.foreign("L", numbered(90), numbered(91))
	n.relist()
	n.set(true, frame)
	n.want("L", "S 90 91")
}

func TestChainThatOnlyOthersUseIsNotWatched(t *testing.T) {
	n := newNode(t)
	n.foreign("L", numbered(90))
	n.relist()
	if got := n.state.Sentinels(); len(got) != 0 {
		t.Errorf("without rules of ours, watched: %v", got)
	}
	n.set(true, frame)
	want := []ChainID{{nat, "L"}, {nat, "Pmark"}, {nat, "S"}}
	if got := slices.SortedFunc(slices.Values(n.state.Sentinels()), ChainID.compare); !slices.Equal(got, want) {
		t.Errorf("watched: %v, want %v", got, want)
	}
}

func TestRemoveLeavesWhatOthersOwn(t *testing.T) {
	n := newNode(t)
	n.foreign("L", numbered(90), jump("L2"))
	n.foreign("L2", numbered(91))
	n.relist()
	n.set(true, frame, web(10))
	n.relist()
	n.commit(n.state.Remove(), true)
	n.want("L", "90 L2")
	n.want("L2", "91")
	for _, gone := range []string{"S", "Pmark", "Pweb"} {
		n.want(gone, "absent")
	}
}

func TestRoundListsOnlyChainsWhoseHandlesItNeeds(t *testing.T) {
	n := newNode(t)
	r := n.state.Round(true, n.kernel.list)
	edits := slices.Concat(r.Add(frame), r.Add(web(10, 11)), r.Finish())
	n.commit(edits, false)
	n.kernel.listed = 0
	n.set(false, web(10, 12))
	n.want("Pweb", "10 12")
	if n.kernel.listed != 1 {
		t.Errorf("%d chains were listed, want 1", n.kernel.listed)
	}
	n.set(false, web(10, 13))
	if n.kernel.listed != 1 {
		t.Errorf("a chain whose handles are known was listed")
	}
}

func TestRoundMayBeCutBetweenAChainAndItsRules(t *testing.T) {
	n := newNode(t)
	r := n.state.Round(true, n.kernel.list)
	n.commit(r.Add(frame), true)
	edits := r.Add(web(10, 11))
	n.commit(edits[:1], true)
	rest := r.Finish()
	n.commit(edits[1:], true)
	n.commit(rest, true)
	n.want("Pweb", "10 11")
}

func TestRoundNoticesDrift(t *testing.T) {
	n := newNode(t)
	r := n.state.Round(true, n.kernel.list)
	n.commit(slices.Concat(r.Add(frame), r.Add(web(10, 11)), r.Finish()), false)
	n.kernel.chains[ChainID{nat, "Pweb"}] = nil
	r = n.state.Round(false, n.kernel.list)
	r.Add(web(10, 12))
	if edits := r.Finish(); r.Err() == nil {
		t.Errorf("a chain that somebody flushed gives %d edits and no error", len(edits))
	}
}

// TestRoundReachesWhatIsWanted walks through random wishes, after each of which
// the kernel must hold exactly them, and foreign rules as they were.
func TestRoundReachesWhatIsWanted(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		n := newNode(t)
		n.foreign("L", numbered(90), numbered(91))
		n.relist()
		wishes := map[string]Part{}
		for step := range 12 {
			all := step == 0
			if rnd.IntN(5) == 0 {
				n.relist()
				all = true
			}
			changed := randomWishes(rnd, wishes)
			parts := []Part{frame}
			for _, owner := range owners {
				if all || slices.Contains(changed, owner) {
					if p, ok := wishes[owner]; ok || !all {
						p.Owner = owner
						parts = append(parts, p)
					}
				}
			}
			n.set(all, parts...)
			n.check(wishes)
			if t.Failed() {
				t.Fatalf("seed %d step %d", seed, step)
			}
		}
	}
}

var owners = []string{"a/1", "a/2", "b/1"}

func randomWishes(rnd *rand.Rand, wishes map[string]Part) (changed []string) {
	for i, owner := range owners {
		switch rnd.IntN(4) {
		case 0:
			continue
		case 1:
			delete(wishes, owner)
		default:
			wishes[owner] = randomPart(rnd, i)
		}
		changed = append(changed, owner)
	}
	return changed
}

func randomPart(rnd *rand.Rand, i int) Part {
	var p Part
	var shared []Rule
	for c := range 1 + rnd.IntN(3) {
		name := fmt.Sprintf("P%d-%d", i, c)
		var own []Rule
		for range rnd.IntN(6) {
			own = append(own, numbered(rnd.IntN(8)))
		}
		p.Blocks = append(p.Blocks, block(name, own...))
		shared = append(shared, jump(name))
	}
	rnd.Shuffle(len(shared), func(a, b int) { shared[a], shared[b] = shared[b], shared[a] })
	if len(shared) > 0 {
		p.Blocks = append(p.Blocks, block("S", shared...))
	}
	return p
}

// check compares the kernel with the wishes and the frame.
func (n *node) check(wishes map[string]Part) {
	n.t.Helper()
	n.want("L", "S 90 91")
	n.want("Pmark", "1")
	private, inShared := 1, 1
	for _, p := range wishes {
		for _, b := range p.Blocks {
			if b.Chain.Kind == Private {
				private++
				n.equal(b)
				continue
			}
			inShared += len(b.Rules)
			n.inOrder(b)
		}
	}
	if got := len(n.kernel.chains) - 2; got != private {
		n.t.Errorf("%d private chains, want %d", got, private)
	}
	words := strings.Fields(n.show("S"))
	if len(words) != inShared || words[len(words)-1] != "Pmark" {
		n.t.Errorf("S holds %q, want %d rules with Pmark last", words, inShared)
	}
}

func (n *node) encoded(rules []Rule) [][]byte {
	all := make([][]byte, 0, len(rules))
	for _, r := range rules {
		b, err := Encode(model.IPv4, r.Exprs)
		if err != nil {
			n.t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

func (n *node) equal(b Block) {
	n.t.Helper()
	same := func(l Listed, want []byte) bool { return bytes.Equal(l.Exprs, want) }
	if !slices.EqualFunc(n.kernel.chains[b.Chain.ID], n.encoded(b.Rules), same) {
		n.t.Errorf("%v is not as wanted: %s", b.Chain.ID, n.show(b.Chain.ID.Name))
	}
}

func (n *node) inOrder(b Block) {
	n.t.Helper()
	have := n.kernel.chains[b.Chain.ID]
	for _, want := range n.encoded(b.Rules) {
		i := slices.IndexFunc(have, func(l Listed) bool { return bytes.Equal(l.Exprs, want) })
		if i < 0 {
			n.t.Errorf("%v lacks a rule or has it in another order: %s", b.Chain.ID, n.show(b.Chain.ID.Name))
			return
		}
		have = have[i+1:]
	}
}
