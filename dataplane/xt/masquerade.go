package xt

import (
	"encoding/binary"
	"fmt"

	"github.com/google/nftables/expr"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

// The two layouts of MASQUERADE revision 0: for IPv4 struct
// nf_nat_ipv4_multi_range_compat, a count of 1 and one range, for IPv6 struct
// nf_nat_range.
const (
	multiRangeFlags   = 4
	multiRangeMinPort = 16
	multiRangeMaxPort = 18
	masqueradeSize    = 20
)

// MasqueradeInfo is what a MASQUERADE target keeps: struct
// nf_nat_ipv4_multi_range_compat or struct nf_nat_range of
// linux/netfilter/nf_nat.h, of which it uses flags and ports.
type MasqueradeInfo struct {
	Family model.Family
	Flags  NATFlags
	// Ports are those that are taken; with NATPort.
	Ports PortRange
}

// Masquerade gives the connection this node's address and a random port, as `-j
// MASQUERADE --random-fully`. The payload differs by family.
func Masquerade(f model.Family) []expr.Any {
	return target("MASQUERADE", 0, MasqueradeInfo{Family: f, Flags: NATRandomFully})
}

func (i MasqueradeInfo) encode() []byte {
	if i.Family == model.IPv6 {
		b := payload(natRangeSize)
		i.put(b, 0, natMinPort, natMaxPort)
		return b
	}
	b := payload(masqueradeSize)
	putUint32(b, 1)
	i.put(b, multiRangeFlags, multiRangeMinPort, multiRangeMaxPort)
	return b
}

func (i MasqueradeInfo) put(b []byte, flags, low, high int) {
	putUint32(b[flags:], uint32(i.Flags))
	binary.BigEndian.PutUint16(b[low:], i.Ports.Low)
	binary.BigEndian.PutUint16(b[high:], i.Ports.High)
}

func parseMasquerade(f model.Family, b []byte) (Info, error) {
	if f == model.IPv4 {
		return masqueradeAt(f, b, multiRangeFlags, multiRangeMinPort, multiRangeMaxPort), nil
	}
	if len(b) < natRangeSize {
		return nil, fmt.Errorf("%d bytes, need %d", len(b), natRangeSize)
	}
	return masqueradeAt(f, b, 0, natMinPort, natMaxPort), nil
}

func masqueradeAt(f model.Family, b []byte, flags, low, high int) MasqueradeInfo {
	return MasqueradeInfo{
		Family: f,
		Flags:  NATFlags(uint32At(b, flags)),
		Ports: PortRange{
			Low:  binary.BigEndian.Uint16(b[low:]),
			High: binary.BigEndian.Uint16(b[high:]),
		},
	}
}
