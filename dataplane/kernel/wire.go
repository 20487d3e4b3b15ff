package kernel

import (
	"encoding/binary"
	"iter"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/wire"
)

// nfHeader is the size of a message's header: struct nlmsghdr and struct
// nfgenmsg.
const nfHeader = unix.NLMSG_HDRLEN + 4

// nfTables returns the type of a message for nf_tables.
func nfTables(message uint16) uint16 { return unix.NFNL_SUBSYS_NFTABLES<<8 | message }

// header describes a message.
type header struct {
	kind, flags uint16
	sequence    uint32
	family      uint8
	// resource is nfgenmsg.res_id.
	resource uint16
}

// appendHeader begins a message; endMessage, told where it began, sets its
// length.
func appendHeader(b []byte, h header) []byte {
	b = binary.NativeEndian.AppendUint32(b, 0)
	b = binary.NativeEndian.AppendUint16(b, h.kind)
	b = binary.NativeEndian.AppendUint16(b, h.flags|unix.NLM_F_REQUEST)
	b = binary.NativeEndian.AppendUint32(b, h.sequence)
	b = binary.NativeEndian.AppendUint32(b, 0)
	b = append(b, h.family, unix.NFNETLINK_V0)
	return binary.BigEndian.AppendUint16(b, h.resource)
}

func endMessage(b []byte, start int) []byte {
	binary.NativeEndian.PutUint32(b[start:], uint32(len(b)-start))
	return b
}

// appendAttribute appends value, of at most 65,531 bytes.
func appendAttribute(b []byte, kind uint16, value []byte) []byte {
	b = appendAttributeHeader(b, kind, len(value))
	b = append(b, value...)
	return append(b, make([]byte, wire.Align(len(value))-len(value))...)
}

// appendString appends value and the zero byte that the kernel wants after it.
func appendString(b []byte, kind uint16, value string) []byte {
	b = appendAttributeHeader(b, kind, len(value)+1)
	b = append(b, value...)
	return append(b, make([]byte, wire.Align(len(value)+1)-len(value))...)
}

func appendUint32(b []byte, kind uint16, value uint32) []byte {
	return binary.BigEndian.AppendUint32(appendAttributeHeader(b, kind, 4), value)
}

func appendUint64(b []byte, kind uint16, value uint64) []byte {
	return binary.BigEndian.AppendUint64(appendAttributeHeader(b, kind, 8), value)
}

// appendPair appends a nest of two numbers, numbered 1 and 2, which is what a
// chain's hook and a rule's compat are.
func appendPair(b []byte, kind uint16, first, second uint32) []byte {
	b = appendAttributeHeader(b, kind|unix.NLA_F_NESTED, 16)
	return appendUint32(appendUint32(b, 1, first), 2, second)
}

func appendAttributeHeader(b []byte, kind uint16, length int) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.NLA_HDRLEN+length))
	return binary.NativeEndian.AppendUint16(b, kind)
}

// message is a message of the kernel.
type message struct {
	kind, flags uint16
	sequence    uint32
	payload     []byte
}

// messages returns the messages of a datagram, up to the first that is cut.
func messages(b []byte) iter.Seq[message] {
	return func(yield func(message) bool) {
		for raw := range wire.Messages(b) {
			m := message{
				kind:     binary.NativeEndian.Uint16(raw[4:]),
				flags:    binary.NativeEndian.Uint16(raw[6:]),
				sequence: binary.NativeEndian.Uint32(raw[8:]),
				payload:  raw[unix.NLMSG_HDRLEN:],
			}
			if !yield(m) {
				return
			}
		}
	}
}

// body returns the attributes of an nfnetlink message.
func (m message) body() []byte { return m.payload[min(4, len(m.payload)):] }

// attribute returns the value of the first attribute of a type, nil if there
// is none.
func attribute(b []byte, kind uint16) []byte {
	for k, v := range wire.Attributes(b) {
		if k == kind {
			return v
		}
	}
	return nil
}

// text returns a string attribute's value without the zero byte.
func text(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == 0 {
		return b[:n-1]
	}
	return b
}

// number returns a big-endian number of 4 or 8 bytes, 0 for anything else.
func number(b []byte) uint64 {
	switch len(b) {
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	case 8:
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// verdict is the kernel's answer to one message: NLMSG_ERROR or NLMSG_DONE.
type verdict struct {
	sequence uint32
	// errno is 0 for an ack.
	errno unix.Errno
	// detail is the kernel's explanation, if it gives one.
	detail string
	// offset is where in the message the attribute begins that it is about;
	// 0 if it is not known.
	offset int
}

// verdict reads m, whose kind is NLMSG_ERROR (struct nlmsgerr, with
// NETLINK_CAP_ACK and NETLINK_EXT_ACK) or NLMSG_DONE.
func (m message) verdict() verdict {
	v := verdict{sequence: m.sequence}
	if len(m.payload) < 4 {
		return v
	}
	v.errno = unix.Errno(-int32(binary.NativeEndian.Uint32(m.payload)))
	const fixed = 4 + unix.NLMSG_HDRLEN
	if m.flags&unix.NLM_F_ACK_TLVS == 0 || m.flags&unix.NLM_F_CAPPED == 0 || len(m.payload) < fixed {
		return v
	}
	for kind, value := range wire.Attributes(m.payload[fixed:]) {
		switch {
		case kind == unix.NLMSGERR_ATTR_MSG:
			v.detail = string(text(value))
		case kind == unix.NLMSGERR_ATTR_OFFS && len(value) == 4:
			v.offset = int(binary.NativeEndian.Uint32(value))
		}
	}
	return v
}
