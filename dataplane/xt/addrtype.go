package xt

import (
	"github.com/google/nftables/expr"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

const addrTypeSize = 8

// AddrLocal is XT_ADDRTYPE_LOCAL: an address of this node.
const AddrLocal uint16 = 1 << 2

// AddrTypeInfo is struct xt_addrtype_info_v1 of linux/netfilter/xt_addrtype.h.
type AddrTypeInfo struct {
	// Source and Destination are sets of address types; 0 for no test.
	Source, Destination uint16
	// Flags are XT_ADDRTYPE_INVERT_SOURCE and so on.
	Flags uint32
}

// DestinationLocal tests that the destination is an address of this node, as
// `-m addrtype --dst-type LOCAL`.
func DestinationLocal() []expr.Any {
	return match("addrtype", 1, AddrTypeInfo{Destination: AddrLocal})
}

// SourceLocal tests that the source is an address of this node, as `-m addrtype
// --src-type LOCAL`.
func SourceLocal() []expr.Any { return match("addrtype", 1, AddrTypeInfo{Source: AddrLocal}) }

func (i AddrTypeInfo) encode() []byte {
	b := payload(addrTypeSize)
	putUint16(b, i.Source)
	putUint16(b[2:], i.Destination)
	putUint32(b[4:], i.Flags)
	return b
}

func parseAddrType(_ model.Family, b []byte) (Info, error) {
	return AddrTypeInfo{
		Source: uint16At(b, 0), Destination: uint16At(b, 2), Flags: uint32At(b, 4),
	}, nil
}
