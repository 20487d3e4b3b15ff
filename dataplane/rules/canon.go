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
	var array [attrLimit]attr
	attrs := array[:0]
	for len(b) > 0 {
		a, rest, err := cutAttr(b)
		if err != nil {
			return nil, err
		}
		if len(attrs) == attrLimit {
			return nil, fmt.Errorf("more than %d attributes", attrLimit)
		}
		attrs = insert(attrs, a)
		b = rest
	}
	var err error
	for i, a := range attrs {
		if s.of(a) == repeated && i > 0 && attrs[i-1].same(a) {
			continue
		}
		if dst, err = canonicalAttr(dst, a, s.of(a)); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// insert puts a into attrs, which has room for it and is sorted by type.
func insert(attrs []attr, a attr) []attr {
	i := len(attrs)
	attrs = attrs[:i+1]
	for ; i > 0 && attrs[i-1].kind > a.kind; i-- {
		attrs[i] = attrs[i-1]
	}
	attrs[i] = a
	return attrs
}

// same reports whether a is of the type after p's and has its value.
func (p attr) same(a attr) bool {
	return p.kind+1 == a.kind && string(p.data) == string(a.data)
}

func canonicalAttr(dst []byte, a attr, m meaning) ([]byte, error) {
	switch {
	case m == dropped:
		return dst, nil
	case m == register || m == repeated:
		return appendRegister(dst, a), nil
	case m >= flags:
		return appendFlags(dst, a, byte(m-flags)), nil
	case m >= nested:
		return canonicalNested(dst, a, m)
	}
	return appendAttr(dst, a.kind, a.data), nil
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
	for _, b := range number {
		if b != 0 {
			return dst
		}
	}
	return dst[:start]
}
