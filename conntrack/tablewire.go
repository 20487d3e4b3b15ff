package conntrack

import (
	"encoding/binary"
	"iter"
	"net/netip"

	"github.com/mdlayher/netlink"
	"github.com/nlproxy/nlproxy/dataplane/model"
	ct "github.com/ti-mo/conntrack"
	"github.com/ti-mo/netfilter"
	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/wire"
)

// Messages and attributes of include/uapi/linux/netfilter/nfnetlink_conntrack.h.
const (
	ctGet    netfilter.MessageType = 1 // IPCTNL_MSG_CT_GET
	ctDelete netfilter.MessageType = 2 // IPCTNL_MSG_CT_DELETE

	ctaTupleOriginal = 1
	ctaTupleReply    = 2
	ctaStatus        = 3
	ctaProtoInfo     = 4
	ctaTimeout       = 7
	ctaID            = 12
	ctaZone          = 18
	ctaFilter        = 25 // since 5.8

	ctaTupleIP    = 1
	ctaTupleProto = 2
	ctaTupleZone  = 3

	ctaIPv4Source      = 1
	ctaIPv4Destination = 2
	ctaIPv6Source      = 3
	ctaIPv6Destination = 4

	ctaProtoNumber          = 1
	ctaProtoSourcePort      = 2
	ctaProtoDestinationPort = 3

	ctaProtoInfoTCP      = 1
	ctaProtoInfoTCPState = 1

	ctaFilterOriginalFlags = 1
	// filterProtocol is the flag of ctaFilterOriginalFlags that makes the
	// protocol of the original tuple count (net/netfilter/nf_internals.h).
	filterProtocol = 1 << 3
)

// request is a message to ctnetlink. The caller sets its sequence number.
func request(kind netfilter.MessageType, flags netlink.HeaderFlags, f model.Family, attributes []netfilter.Attribute) (netlink.Message, error) {
	return netfilter.MarshalNetlink(netfilter.Header{
		SubsystemID: netfilter.NFSubsysCTNetlink,
		MessageType: kind,
		Family:      netfilter.ProtoFamily(f),
		Flags:       netlink.Request | flags,
	}, attributes)
}

func nested(kind uint16, children ...netfilter.Attribute) netfilter.Attribute {
	return netfilter.Attribute{Type: kind, Nested: true, Children: children}
}

func plain(kind uint16, data []byte) netfilter.Attribute {
	return netfilter.Attribute{Type: kind, Data: data}
}

// filterAttributes ask for flows of one protocol only. The kernel takes the
// flags in its own byte order (ctnetlink_parse_filter in
// net/netfilter/nf_conntrack_netlink.c, 5.8); before 5.8 it reads none of this.
func filterAttributes(p model.Protocol) []netfilter.Attribute {
	return []netfilter.Attribute{
		nested(ctaTupleOriginal, nested(ctaTupleProto, plain(ctaProtoNumber, []byte{byte(p)}))),
		nested(ctaFilter, plain(ctaFilterOriginalFlags, binary.NativeEndian.AppendUint32(nil, filterProtocol))),
	}
}

// deleteAttributes name one flow.
func deleteAttributes(f *Flow) []netfilter.Attribute {
	source, destination := uint16(ctaIPv4Source), uint16(ctaIPv4Destination)
	if f.Family == model.IPv6 {
		source, destination = ctaIPv6Source, ctaIPv6Destination
	}
	from, to := f.Original.Source, f.Original.Destination
	attributes := []netfilter.Attribute{nested(ctaTupleOriginal,
		nested(ctaTupleIP, plain(source, from.Addr().AsSlice()), plain(destination, to.Addr().AsSlice())),
		nested(ctaTupleProto,
			plain(ctaProtoNumber, []byte{byte(f.Protocol)}),
			plain(ctaProtoSourcePort, netfilter.Uint16Bytes(from.Port())),
			plain(ctaProtoDestinationPort, netfilter.Uint16Bytes(to.Port()))))}
	if f.Zone != 0 {
		attributes = append(attributes, plain(ctaZone, netfilter.Uint16Bytes(f.Zone)))
	}
	if f.ID != 0 {
		attributes = append(attributes, plain(ctaID, netfilter.Uint32Bytes(f.ID)))
	}
	return attributes
}

// message is a message of the kernel.
type message struct {
	kind     netlink.HeaderType
	flags    netlink.HeaderFlags
	sequence uint32
	payload  []byte
}

// messages returns the messages of a datagram, up to the first that is cut.
func messages(b []byte) iter.Seq[message] {
	return func(yield func(message) bool) {
		for raw := range wire.Messages(b) {
			m := message{
				kind:     netlink.HeaderType(binary.NativeEndian.Uint16(raw[4:])),
				flags:    netlink.HeaderFlags(binary.NativeEndian.Uint16(raw[6:])),
				sequence: binary.NativeEndian.Uint32(raw[8:]),
				payload:  raw[unix.NLMSG_HDRLEN:],
			}
			if !yield(m) {
				return
			}
		}
	}
}

// errno is the kernel's verdict in a message of type Error or Done: 0 for
// success.
func (m message) errno() unix.Errno {
	if len(m.payload) < 4 {
		return 0
	}
	return unix.Errno(-int32(binary.NativeEndian.Uint32(m.payload)))
}

// decode reads a message of a dump into f, and reports whether there is a flow
// in it that has both tuples.
//
// Event.Unmarshal of ti-mo/conntrack reads the same and more, in 2.0 µs and 34
// allocations of 1.7 KB for a UDP flow; this takes 0.08 µs and none
// (BenchmarkDecode). The kernel needs 1.9 µs to write one.
func (f *Flow) decode(payload []byte) bool {
	*f = Flow{}
	if len(payload) < nfGenMessage {
		return false
	}
	f.Family = model.Family(payload[0])
	for kind, value := range wire.Attributes(payload[nfGenMessage:]) {
		switch kind {
		case ctaTupleOriginal:
			f.decodeTuple(&f.Original, value)
		case ctaTupleReply:
			zone := f.Zone
			f.decodeTuple(&f.Reply, value)
			f.Zone = zone
		case ctaProtoInfo:
			f.TCPState = tcpState(value)
		case ctaStatus:
			f.Status = ct.Status(number(value))
		case ctaTimeout:
			f.Timeout = uint32(number(value))
		case ctaID:
			f.ID = uint32(number(value))
		case ctaZone:
			f.Zone = uint16(number(value))
		}
	}
	return f.Original.Source.IsValid() && f.Original.Destination.IsValid() && f.Reply.Source.IsValid()
}

// nfGenMessage is the size of struct nfgenmsg, which begins with the family.
const nfGenMessage = 4

func (f *Flow) decodeTuple(t *Tuple, b []byte) {
	var source, destination netip.Addr
	var from, to uint16
	for kind, value := range wire.Attributes(b) {
		switch kind {
		case ctaTupleIP:
			source, destination = decodeAddresses(value)
		case ctaTupleProto:
			f.Protocol, from, to = decodePorts(value)
		case ctaTupleZone:
			f.Zone = uint16(number(value))
		}
	}
	t.Source, t.Destination = netip.AddrPortFrom(source, from), netip.AddrPortFrom(destination, to)
}

func decodeAddresses(b []byte) (source, destination netip.Addr) {
	for kind, value := range wire.Attributes(b) {
		switch kind {
		case ctaIPv4Source, ctaIPv6Source:
			source, _ = netip.AddrFromSlice(value)
		case ctaIPv4Destination, ctaIPv6Destination:
			destination, _ = netip.AddrFromSlice(value)
		}
	}
	return source, destination
}

func decodePorts(b []byte) (p model.Protocol, source, destination uint16) {
	for kind, value := range wire.Attributes(b) {
		switch kind {
		case ctaProtoNumber:
			p = model.Protocol(number(value))
		case ctaProtoSourcePort:
			source = uint16(number(value))
		case ctaProtoDestinationPort:
			destination = uint16(number(value))
		}
	}
	return p, source, destination
}

func tcpState(b []byte) (state uint8) {
	for kind, info := range wire.Attributes(b) {
		if kind != ctaProtoInfoTCP {
			continue
		}
		for kind, value := range wire.Attributes(info) {
			if kind == ctaProtoInfoTCPState {
				state = uint8(number(value))
			}
		}
	}
	return state
}

// number returns a big-endian number of any size up to 8 bytes.
func number(b []byte) (n uint64) {
	for _, digit := range b {
		n = n<<8 | uint64(digit)
	}
	return n
}
