package xt

import (
	"github.com/google/nftables/expr"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

// The layout of struct xt_sctp_info: two port ranges, 64 words of chunk types,
// how these apply, four tests of chunk flags of 3 bytes and their number, flags.
const (
	sctpTests  = 268
	sctpFlags  = 284
	sctpInvert = 288
	sctpSize   = 292
)

// XT_SCTP_SRC_PORTS and so on: which fields of an SCTPInfo count.
const (
	SCTPSource uint32 = 1 << iota
	SCTPDestination
	SCTPChunks
)

// SCTPInfo is struct xt_sctp_info of linux/netfilter/xt_sctp.h, without its
// tests of chunks.
type SCTPInfo struct {
	Destination, Source PortRange
	// Flags says which tests are made, Invert which of them are inverted: bits
	// SCTPSource, SCTPDestination and SCTPChunks.
	Flags, Invert uint32
}

// SCTP is a bare `-m sctp`: true for every SCTP packet whose header is whole.
func SCTP() []expr.Any { return match("sctp", 0, SCTPInfo{}) }

// SCTPDestinationPort is `-m sctp --dport port`.
func SCTPDestinationPort(port uint16) []expr.Any {
	return match("sctp", 0, SCTPInfo{
		Destination: PortRange{Low: port, High: port},
		Flags:       SCTPDestination,
	})
}

func (i SCTPInfo) encode() []byte {
	b := payload(sctpSize)
	i.Destination.encode(b)
	i.Source.encode(b[4:])
	for test := sctpTests; test < sctpTests+4*3; test += 3 {
		b[test] = 0xff // no chunk type, as iptables leaves tests that it does not use
	}
	putUint32(b[sctpFlags:], i.Flags)
	putUint32(b[sctpInvert:], i.Invert)
	return b
}

func parseSCTP(_ model.Family, b []byte) (Info, error) {
	return SCTPInfo{
		Destination: portRangeAt(b, 0), Source: portRangeAt(b, 4),
		Flags: uint32At(b, sctpFlags), Invert: uint32At(b, sctpInvert),
	}, nil
}
