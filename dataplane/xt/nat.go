package xt

import (
	"encoding/binary"
	"net/netip"

	"github.com/google/nftables/expr"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

// The layout of struct nf_nat_range2; its first natRangeSize bytes are struct
// nf_nat_range.
const (
	natMinAddr   = 4
	natMaxAddr   = 20
	natMinPort   = 36
	natMaxPort   = 38
	natRangeSize = 40
	natBasePort  = 40
	dnatSize     = 42
)

// NATFlags are NF_NAT_RANGE_MAP_IPS and so on in linux/netfilter/nf_nat.h.
type NATFlags uint32

// What of a range counts, and how a port is picked.
const (
	NATAddress     NATFlags = 1 << 0
	NATPort        NATFlags = 1 << 1
	NATRandom      NATFlags = 1 << 2
	NATPersistent  NATFlags = 1 << 3
	NATRandomFully NATFlags = 1 << 4
	NATPortOffset  NATFlags = 1 << 5
)

// DNATInfo is struct nf_nat_range2 of linux/netfilter/nf_nat.h.
type DNATInfo struct {
	Flags NATFlags
	// Min and Max are the ends of the range, both included.
	Min, Max netip.AddrPort
	// BasePort is the port that becomes the first of the range; with
	// NATPortOffset.
	BasePort uint16
}

// DNAT sends the connection to another address and port, as `-j DNAT
// --to-destination addr`.
func DNAT(addr netip.AddrPort) []expr.Any {
	return target("DNAT", 2, DNATInfo{Flags: NATAddress | NATPort, Min: addr, Max: addr})
}

func (i DNATInfo) encode() []byte {
	b := payload(dnatSize)
	putUint32(b, uint32(i.Flags))
	copy(b[natMinAddr:], i.Min.Addr().AsSlice())
	copy(b[natMaxAddr:], i.Max.Addr().AsSlice())
	binary.BigEndian.PutUint16(b[natMinPort:], i.Min.Port())
	binary.BigEndian.PutUint16(b[natMaxPort:], i.Max.Port())
	binary.BigEndian.PutUint16(b[natBasePort:], i.BasePort)
	return b
}

func parseDNAT(f model.Family, b []byte) (Info, error) {
	return DNATInfo{
		Flags:    NATFlags(uint32At(b, 0)),
		Min:      netip.AddrPortFrom(addrAt(f, b, natMinAddr), binary.BigEndian.Uint16(b[natMinPort:])),
		Max:      netip.AddrPortFrom(addrAt(f, b, natMaxAddr), binary.BigEndian.Uint16(b[natMaxPort:])),
		BasePort: binary.BigEndian.Uint16(b[natBasePort:]),
	}, nil
}
