package rules

import "testing"

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
