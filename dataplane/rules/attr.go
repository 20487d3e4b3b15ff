package rules

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// errTruncated is in the chain of errors about bytes that are no sequence of
// netlink attributes.
var errTruncated = errors.New("truncated netlink attribute")

// errNameless is in the chain of errors about expressions that do not say what
// they are.
var errNameless = errors.New("expression without a name")

const (
	attrHeader = unix.SizeofNlAttr
	// attrType masks NLA_F_NESTED and NLA_F_NET_BYTEORDER out of a type: what
	// they say is known from the type, and kernels do not list them.
	attrType = ^uint16(unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
	// attrMax is the longest payload: the length is a uint16 and counts the
	// header (struct nlattr in linux/netlink.h).
	attrMax = 0xffff - attrHeader
)

// attr is one netlink attribute, its type without flags.
type attr struct {
	kind uint16
	data []byte
}

// cutAttr splits b after its first attribute.
func cutAttr(b []byte) (first attr, rest []byte, err error) {
	if len(b) < attrHeader {
		return attr{}, nil, errTruncated
	}
	length := int(binary.NativeEndian.Uint16(b))
	if length < attrHeader || length > len(b) {
		return attr{}, nil, errTruncated
	}
	return attrAt(b, 0), b[min(aligned(length), len(b)):], nil
}

// attrAt is the attribute that cutAttr has found at that place of b.
func attrAt(b []byte, at uint16) attr {
	b = b[at:]
	return attr{
		binary.NativeEndian.Uint16(b[2:]) & attrType,
		b[attrHeader:binary.NativeEndian.Uint16(b)],
	}
}

// aligned is NLA_ALIGN.
func aligned(n int) int { return (n + unix.NLA_ALIGNTO - 1) &^ (unix.NLA_ALIGNTO - 1) }

// beginAttr appends the header of an attribute; endAttr with the same start,
// len(dst) before, fills in its length.
func beginAttr(dst []byte, kind uint16) []byte {
	dst = append(dst, 0, 0, 0, 0)
	binary.NativeEndian.PutUint16(dst[len(dst)-2:], kind)
	return dst
}

// endAttr ends the attribute that began at start, and pads it.
func endAttr(dst []byte, start int) ([]byte, error) {
	length := len(dst) - start
	if length > attrHeader+attrMax {
		return nil, fmt.Errorf("attribute of %d bytes, limit %d", length-attrHeader, attrMax)
	}
	binary.NativeEndian.PutUint16(dst[start:], uint16(length))
	return append(dst, padding[:aligned(length)-length]...), nil
}

const padding = "\x00\x00\x00\x00"

// appendAttr appends a whole attribute. len(data) is at most attrMax.
func appendAttr(dst []byte, kind uint16, data []byte) []byte {
	start := len(dst)
	dst = append(beginAttr(dst, kind), data...)
	binary.NativeEndian.PutUint16(dst[start:], uint16(len(dst)-start))
	return append(dst, padding[:aligned(len(data))-len(data)]...)
}

// element is one element of a list of expressions.
type element struct {
	// name is without the NUL.
	name []byte
	// data is the payload of NFTA_EXPR_DATA; empty without one.
	data []byte
}

// cutElement splits a list of expressions after its first.
func cutElement(list []byte) (first element, rest []byte, err error) {
	a, rest, err := cutAttr(list)
	if err != nil {
		return element{}, nil, err
	}
	if a.kind != unix.NFTA_LIST_ELEM {
		return element{}, nil, fmt.Errorf("attribute %d in a list of expressions", a.kind)
	}
	first, err = elementOf(a.data)
	return first, rest, err
}

// elementOf reads the payload of NFTA_LIST_ELEM.
func elementOf(b []byte) (e element, err error) {
	var a attr
	for len(b) > 0 {
		if a, b, err = cutAttr(b); err != nil {
			return element{}, err
		}
		switch a.kind {
		case unix.NFTA_EXPR_NAME:
			e.name = untilNUL(a.data)
		case unix.NFTA_EXPR_DATA:
			e.data = a.data
		}
	}
	if len(e.name) == 0 {
		return element{}, errNameless
	}
	return e, nil
}

// untilNUL returns b without the NUL at its end.
func untilNUL(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return b
}
