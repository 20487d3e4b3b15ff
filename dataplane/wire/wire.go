// Package wire cuts what the kernel sends over netlink into messages and
// attributes, as slices of what was received.
//
// Nothing is copied, and hostile or cut input ends the iteration; it never
// panics.
package wire

import (
	"encoding/binary"
	"iter"

	"golang.org/x/sys/unix"
)

// Messages returns the messages of a datagram, headers included, up to the
// first that is cut. Each is at least unix.NLMSG_HDRLEN bytes.
func Messages(b []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(b) >= unix.NLMSG_HDRLEN {
			n := int(binary.NativeEndian.Uint32(b))
			if n < unix.NLMSG_HDRLEN || n > len(b) || !yield(b[:n]) {
				return
			}
			b = b[min(Align(n), len(b)):]
		}
	}
}

// Attributes returns the types, without the bits for nests and byte order, and
// the values of a list of attributes, up to the first that is cut.
func Attributes(b []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= unix.NLA_HDRLEN {
			n := int(binary.NativeEndian.Uint16(b))
			if n < unix.NLA_HDRLEN || n > len(b) {
				return
			}
			kind := binary.NativeEndian.Uint16(b[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
			if !yield(kind, b[unix.NLA_HDRLEN:n]) {
				return
			}
			b = b[min(Align(n), len(b)):]
		}
	}
}

// Align rounds a length up to where the next message or attribute begins
// (NLMSG_ALIGNTO and NLA_ALIGNTO of linux/netlink.h are both 4).
func Align(n int) int { return (n + unix.NLA_ALIGNTO - 1) &^ (unix.NLA_ALIGNTO - 1) }
