package xt

import (
	"github.com/google/nftables/expr"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

const rejectSize = 4

// How a packet is refused: IPT_ICMP_PORT_UNREACHABLE in
// linux/netfilter_ipv4/ipt_REJECT.h, IP6T_ICMP6_PORT_UNREACH in
// linux/netfilter_ipv6/ip6t_REJECT.h.
const (
	PortUnreachable4 uint32 = 3
	PortUnreachable6 uint32 = 4
)

// RejectInfo is struct ipt_reject_info or struct ip6t_reject_info. What With
// means differs by family.
type RejectInfo struct {
	With uint32
}

// Reject refuses the packet with "port unreachable", as `-j REJECT`.
func Reject(f model.Family) []expr.Any {
	if f == model.IPv6 {
		return target("REJECT", 0, RejectInfo{With: PortUnreachable6})
	}
	return target("REJECT", 0, RejectInfo{With: PortUnreachable4})
}

func (i RejectInfo) encode() []byte {
	b := payload(rejectSize)
	putUint32(b, i.With)
	return b
}

func parseReject(_ model.Family, b []byte) (Info, error) {
	return RejectInfo{With: uint32At(b, 0)}, nil
}
