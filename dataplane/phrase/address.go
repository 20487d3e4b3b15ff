package phrase

import (
	"net"
	"net/netip"

	"github.com/google/nftables/expr"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

// Where the addresses are in the network header, and how long they are, in
// bytes: RFC 791 section 3.1, RFC 8200 section 3.
type header struct{ source, destination, length uint32 }

func headerOf(a netip.Addr) header {
	if model.FamilyOf(a) == model.IPv4 {
		return header{source: 12, destination: 16, length: 4}
	}
	return header{source: 8, destination: 24, length: 16}
}

// Destination tests that the destination address is in p, as `-d p`. A prefix
// of length 0 holds every address and needs no expression.
func Destination(p netip.Prefix) []expr.Any {
	return address(p, headerOf(p.Addr()).destination, expr.CmpOpEq)
}

// NotDestination tests that the destination address is not in p, as `! -d p`. A
// prefix of length 0 leaves no address, and the test never succeeds.
func NotDestination(p netip.Prefix) []expr.Any {
	return address(p, headerOf(p.Addr()).destination, expr.CmpOpNeq)
}

// Source tests that the source address is in p, as `-s p`. A prefix of length
// 0 holds every address and needs no expression.
func Source(p netip.Prefix) []expr.Any {
	return address(p, headerOf(p.Addr()).source, expr.CmpOpEq)
}

// NotSource tests that the source address is not in p, as `! -s p`. A prefix of
// length 0 leaves no address, and the test never succeeds.
func NotSource(p netip.Prefix) []expr.Any {
	return address(p, headerOf(p.Addr()).source, expr.CmpOpNeq)
}

// address compares the address at an offset with p. It loads no more bytes
// than p has, and needs a mask only if p ends within a byte.
func address(p netip.Prefix, offset uint32, op expr.CmpOp) []expr.Any {
	if p.Bits() == 0 {
		return everyOr(op)
	}
	length := headerOf(p.Addr()).length
	value := p.Masked().Addr().AsSlice()
	if p.Bits()%8 == 0 {
		length = uint32(p.Bits() / 8)
		return []expr.Any{load(offset, length), compare(op, value[:length])}
	}
	mask := net.CIDRMask(p.Bits(), p.Addr().BitLen())
	return []expr.Any{load(offset, length), and(mask), compare(op, value)}
}

func load(offset, length uint32) *expr.Payload {
	return &expr.Payload{
		DestRegister: register,
		Base:         expr.PayloadBaseNetworkHeader,
		Offset:       offset,
		Len:          length,
	}
}
