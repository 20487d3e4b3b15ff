package phrase

import (
	"strings"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

// register is NFT_REG_1 (linux/netfilter/nf_tables.h), the first of 16 bytes.
const register = 1

// Protocol tests the layer-4 protocol, as `-p`.
func Protocol(p model.Protocol) []expr.Any {
	return []expr.Any{meta(expr.MetaKeyL4PROTO), compare(expr.CmpOpEq, []byte{byte(p)})}
}

// DestinationPort tests the destination port of TCP and UDP, as `--dport`. It
// must stand beside Protocol: it looks at bytes 2 and 3 of any layer-4 header.
func DestinationPort(port uint16) []expr.Any {
	return []expr.Any{
		&expr.Payload{
			DestRegister: register,
			Base:         expr.PayloadBaseTransportHeader,
			Offset:       2,
			Len:          2,
		},
		compare(expr.CmpOpEq, binaryutil.BigEndian.PutUint16(port)),
	}
}

// InInterface tests the name of the interface by which the packet came, as
// `-i name`: at most 15 bytes. A name that ends in "+" stands for every name
// that begins with what is before it; "+" alone needs no expression.
func InInterface(name string) []expr.Any { return inInterface(name, expr.CmpOpEq) }

// NotInInterface is the opposite of InInterface, as `! -i name`. For "+" it
// never succeeds.
func NotInInterface(name string) []expr.Any { return inInterface(name, expr.CmpOpNeq) }

func inInterface(name string, op expr.CmpOp) []expr.Any {
	prefix, ok := strings.CutSuffix(name, "+")
	if !ok {
		prefix += "\x00"
	}
	if prefix == "" {
		return everyOr(op)
	}
	return []expr.Any{meta(expr.MetaKeyIIFNAME), compare(op, []byte(prefix))}
}

// everyOr is a comparison with something that all packets have: no expression
// where they should, and where they should not, one that never succeeds. That
// is iptables-nft's `! -i +`: no interface has a "/" in its name
// (dev_valid_name in net/core/dev.c, Linux 6.18).
func everyOr(op expr.CmpOp) []expr.Any {
	if op == expr.CmpOpEq {
		return nil
	}
	return []expr.Any{meta(expr.MetaKeyIIFNAME), compare(expr.CmpOpEq, []byte("INVAL/D\x00"))}
}

// Mark tests that all bits of mask are set in the packet's mark, as
// `-m mark --mark mask/mask`.
func Mark(mask uint32) []expr.Any { return mark(mask, expr.CmpOpEq) }

// NotMark tests that not all bits of mask are set in the packet's mark, as
// `-m mark ! --mark mask/mask`.
func NotMark(mask uint32) []expr.Any { return mark(mask, expr.CmpOpNeq) }

func mark(mask uint32, op expr.CmpOp) []expr.Any {
	bits := binaryutil.NativeEndian.PutUint32(mask)
	return []expr.Any{meta(expr.MetaKeyMARK), and(bits), compare(op, bits)}
}

// Counter counts the packets and bytes that got this far in the rule.
func Counter() []expr.Any { return []expr.Any{&expr.Counter{}} }

// Jump continues in another chain, and after it with the next rule.
func Jump(chain string) []expr.Any {
	return []expr.Any{&expr.Verdict{Kind: expr.VerdictJump, Chain: chain}}
}

// Return continues after the rule that jumped here.
func Return() []expr.Any { return verdict(expr.VerdictReturn) }

// Accept lets the packet pass this hook.
func Accept() []expr.Any { return verdict(expr.VerdictAccept) }

// Drop discards the packet.
func Drop() []expr.Any { return verdict(expr.VerdictDrop) }

func verdict(kind expr.VerdictKind) []expr.Any {
	return []expr.Any{&expr.Verdict{Kind: kind}}
}

func meta(key expr.MetaKey) *expr.Meta {
	return &expr.Meta{Key: key, Register: register}
}

func compare(op expr.CmpOp, value []byte) *expr.Cmp {
	return &expr.Cmp{Op: op, Register: register, Data: value}
}

// and keeps the bits of mask of what was loaded.
func and(mask []byte) *expr.Bitwise {
	return &expr.Bitwise{
		SourceRegister: register,
		DestRegister:   register,
		Len:            uint32(len(mask)),
		Mask:           mask,
		Xor:            make([]byte, len(mask)),
	}
}
