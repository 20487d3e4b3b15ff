package rules

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// Canonical appends to dst what makes a rule the rule that it is, given its
// encoded list of expressions: the same bytes for what Encode gives and for
// what any kernel from 4.19 to 6.18 lists after it was sent, whatever the
// rule's counters are. What it appends is itself such a list, and its own
// canonical form. On an error dst comes back as it was.
//
// Two rules of the same table do the same if their canonical forms are equal.
func Canonical(dst, exprs []byte) ([]byte, error) {
	out := dst
	for n := 1; len(exprs) > 0; n++ {
		e, rest, err := cutElement(exprs)
		if err == nil {
			out, err = canonicalElement(out, e)
		}
		if err != nil {
			return dst, fmt.Errorf("expression %d: %w", n, err)
		}
		exprs = rest
	}
	return out, nil
}

func canonicalElement(dst []byte, e element) ([]byte, error) {
	start := len(dst)
	dst = beginAttr(dst, unix.NFTA_LIST_ELEM)
	dst, err := canonicalExpression(dst, e)
	if err != nil {
		return nil, err
	}
	return endAttr(dst, start)
}

func canonicalExpression(dst []byte, e element) ([]byte, error) {
	name := len(dst)
	dst = append(append(beginAttr(dst, unix.NFTA_EXPR_NAME), e.name...), 0)
	dst, err := endAttr(dst, name)
	if err != nil {
		return nil, err
	}
	data := len(dst)
	dst, err = canonicalAttrs(beginAttr(dst, unix.NFTA_EXPR_DATA), e.data, shapes[string(e.name)])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.name, err)
	}
	if len(dst) == data+attrHeader {
		return dst[:data], nil // nothing in it says anything
	}
	return endAttr(dst, data)
}

// attrLimit is more attributes than any expression has.
const attrLimit = 32

// canonicalAttrs appends the attributes in b that say something, in the order
// of their types.
func canonicalAttrs(dst, b []byte, s *shape) ([]byte, error) {
	var array [attrLimit]uint16 // a small one, since it is cleared for each call
	order, err := sorted(array[:0], b)
	if err != nil {
		return nil, err
	}
	var last attr
	for _, at := range order {
		a := attrAt(b, at)
		m := s.of(a)
		if m == repeated && last.kind+1 == a.kind && string(last.data) == string(a.data) {
			continue
		}
		if dst, err = canonicalAttr(dst, a, m); err != nil {
			return nil, err
		}
		last = a
	}
	return dst, nil
}

// sorted appends to order, up to its capacity, where in b the attributes are,
// in the order of their types.
func sorted(order []uint16, b []byte) ([]uint16, error) {
	for at := 0; at < len(b); {
		_, rest, err := cutAttr(b[at:])
		if err != nil {
			return nil, err
		}
		if len(order) == cap(order) || at > attrMax {
			return nil, fmt.Errorf("more than %d attributes", cap(order))
		}
		order = insert(order, b, uint16(at))
		at = len(b) - len(rest)
	}
	return order, nil
}

// insert puts at into order, which has room for it.
func insert(order []uint16, b []byte, at uint16) []uint16 {
	kind := attrAt(b, at).kind
	i := len(order)
	order = order[:i+1]
	for ; i > 0 && attrAt(b, order[i-1]).kind > kind; i-- {
		order[i] = order[i-1]
	}
	order[i] = at
	return order
}

func canonicalAttr(dst []byte, a attr, m meaning) ([]byte, error) {
	switch {
	case m == plain:
		return appendAttr(dst, a.kind, a.data), nil
	case m == dropped:
		return dst, nil
	case m == register || m == repeated:
		return appendRegister(dst, a), nil
	case m >= flags:
		return appendFlags(dst, a, byte(m-flags)), nil
	}
	return canonicalNested(dst, a, m)
}

func canonicalNested(dst []byte, a attr, m meaning) (_ []byte, err error) {
	start := len(dst)
	dst = beginAttr(dst, a.kind)
	switch m {
	case value:
		dst, err = canonicalAttrs(dst, a.data, &valueShape)
	case verdict:
		dst, err = canonicalAttrs(dst, a.data, nil)
	case list:
		dst, err = Canonical(dst, a.data)
	case single:
		var e element
		if e, err = elementOf(a.data); err == nil {
			dst, err = canonicalExpression(dst, e)
		}
	}
	if err != nil {
		return nil, err
	}
	return endAttr(dst, start)
}

// appendRegister writes a register as the kernel lists it: those 16 bytes apart
// have two numbers, NFT_REG_1 = 1 and NFT_REG32_00 = 8 for the first, and the
// lower is listed (nft_dump_register in net/netfilter/nf_tables_api.c).
func appendRegister(dst []byte, a attr) []byte {
	dst = appendAttr(dst, a.kind, a.data)
	if len(a.data) != 4 {
		return dst
	}
	number := dst[len(dst)-4:]
	if r := binary.BigEndian.Uint32(number); r >= unix.NFT_REG32_00 && r <= unix.NFT_REG32_15 && r%4 == 0 {
		binary.BigEndian.PutUint32(number, r/4-1)
	}
	return dst
}

// appendFlags writes a number without the bits of implied, and nothing if the
// rest of it is 0.
func appendFlags(dst []byte, a attr, implied byte) []byte {
	start := len(dst)
	dst = appendAttr(dst, a.kind, a.data)
	number := dst[start+attrHeader:][:len(a.data)]
	if len(number) > 0 {
		number[len(number)-1] &^= implied
	}
	if isZero(number) {
		return dst[:start]
	}
	return dst
}
