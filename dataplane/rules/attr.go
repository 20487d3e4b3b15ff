package rules

import (
	"bytes"
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
	first = attr{binary.NativeEndian.Uint16(b[2:]) & attrType, b[attrHeader:length]}
	return first, b[min(aligned(length), len(b)):], nil
}

// aligned is NLA_ALIGN.
func aligned(n int) int { return (n + unix.NLA_ALIGNTO - 1) &^ (unix.NLA_ALIGNTO - 1) }

// beginAttr appends the header of an attribute; endAttr with the same start,
// len(dst) before, fills in its length.
func beginAttr(dst []byte, kind uint16) []byte {
	return binary.NativeEndian.AppendUint16(append(dst, 0, 0), kind)
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
	dst = binary.NativeEndian.AppendUint16(dst, uint16(attrHeader+len(data)))
	dst = binary.NativeEndian.AppendUint16(dst, kind)
	dst = append(dst, data...)
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
			e.name = bytes.TrimRight(a.data, "\x00")
		case unix.NFTA_EXPR_DATA:
			e.data = a.data
		}
	}
	if len(e.name) == 0 {
		return element{}, errNameless
	}
	return e, nil
}
