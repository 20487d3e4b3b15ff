package rules

import (
	"fmt"
	"slices"
	"testing"
)

func TestJumpsToChainsOfNobodyGoWithThem(t *testing.T) {
	n := newNode(t)
	n.foreign("X", numbered(8))
	n.foreign("Pleft", numbered(9))
	n.foreign("L", jump("Pleft"), numbered(7), jump("X"), jump("Pleft"))
	n.foreign("Lother", jump("Pleft"))
	n.relist()
	n.set(true, frame)
	n.want("Pleft", "absent")
	n.want("L", "S 7 X")
	n.want("Lother", "")
	n.want("X", "8")
	if ops := n.set(true, frame); ops != 0 {
		t.Errorf("%d operations after that", ops)
	}
}

func TestJumpsToChainsOfOursStay(t *testing.T) {
	n := newNode(t)
	n.set(true, frame)
	n.foreign("L", jump("S"), jump("Pmark"), numbered(7))
	n.relist()
	n.set(true, frame)
	n.want("L", "S S Pmark 7")
}

func TestChangesOfOneOwnerTouchNoJump(t *testing.T) {
	n := newNode(t)
	n.set(true, frame)
	n.foreign("Pleft", numbered(9))
	n.foreign("L", jump("Pleft"))
	n.relist()
	n.set(false, frame, web(10))
	n.want("L", "S Pleft")
	n.want("Pleft", "9")
}

// TestWhatNobodyWantsGoesInOneOrder has many of each kind, which are in order
// only if somebody puts them there.
func TestWhatNobodyWantsGoesInOneOrder(t *testing.T) {
	n := newNode(t)
	parts := []Part{frame}
	for i := range 20 {
		chain := fmt.Sprintf("Pweb%02d", i)
		parts = append(parts, Part{Owner: chain, Blocks: []Block{block(chain, numbered(1)), block("S", jump(chain))}})
	}
	n.set(true, parts...)
	n.removedInOneOrder("of owners that are gone", 20*3)
	for i := range 20 {
		left := fmt.Sprintf("Pleft%02d", i)
		n.foreign(left, numbered(2))
		n.foreign(fmt.Sprintf("L%02d", i), jump(left))
		n.foreign(fmt.Sprintf("S%02d", i), numbered(3))
	}
	n.relist()
	n.removedInOneOrder("of nobody", 20*(3+4))
}

// removedInOneOrder checks the operations that leave the frame alone.
func (n *node) removedInOneOrder(what string, want int) {
	n.t.Helper()
	var first []Op
	for i := range 3 {
		r := n.state.Round(true, n.kernel.list)
		r.Add(frame)
		var ops []Op
		for _, e := range r.Finish() {
			ops = append(ops, e.Ops...)
		}
		if i == 0 {
			first = ops
		}
		same := func(a, b Op) bool { return a.Verb == b.Verb && a.Place == b.Place && a.Handle == b.Handle }
		if !slices.EqualFunc(ops, first, same) {
			n.t.Fatalf("%s: once %v\nand once %v", what, first, ops)
		}
	}
	if len(first) != want {
		n.t.Errorf("%s: %d operations, want %d", what, len(first), want)
	}
}
