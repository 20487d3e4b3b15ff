package xt

import (
	"github.com/google/nftables/expr"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

const markSize = 8

// MarkInfo is struct xt_mark_tginfo2 of linux/netfilter/xt_mark.h: the bits of
// Mask are cleared in the packet's mark, then those of Mark are flipped.
type MarkInfo struct {
	Mark, Mask uint32
}

// MarkOr sets bits of the packet's mark, as `-j MARK --or-mark`.
func MarkOr(bits uint32) []expr.Any { return target("MARK", 2, MarkInfo{Mark: bits, Mask: bits}) }

// MarkXor flips bits of the packet's mark, as `-j MARK --xor-mark`.
func MarkXor(bits uint32) []expr.Any { return target("MARK", 2, MarkInfo{Mark: bits}) }

func (i MarkInfo) encode() []byte {
	b := payload(markSize)
	putUint32(b, i.Mark)
	putUint32(b[4:], i.Mask)
	return b
}

func parseMark(_ model.Family, b []byte) (Info, error) {
	return MarkInfo{Mark: uint32At(b, 0), Mask: uint32At(b, 4)}, nil
}
