package iptables

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/google/nftables/expr"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// line gathers the options of one rule, each with the blank before it, in the
// places where iptables prints them.
type line struct {
	family                                 model.Family
	source, destination, in, out, protocol string
	// matches are in the order of the expressions.
	matches []byte
	action  string
	counter expr.Counter

	// l4 is the protocol that the rule is limited to, by name; empty for none.
	l4 string
	// ports says that matches ends in a test of a port.
	ports bool
	// loaded is what was last read from the packet, and mask the part of it
	// that is compared; nil for all.
	loaded expr.Any
	mask   []byte
}

func (l *line) options() string {
	return l.source + l.destination + l.in + l.out + l.protocol + string(l.matches) + l.action
}

// say appends a match.
func (l *line) say(format string, args ...any) {
	l.matches = fmt.Appendf(l.matches, format, args...)
	l.ports = false
}

// unknown says that something has no counterpart.
func (l *line) unknown(format string, args ...any) {
	l.say(" /* "+format+" */", args...)
}

func (l *line) load(e expr.Any, reads bool) {
	if !reads {
		l.unknown("%s set", nameOf(e))
		return
	}
	l.loaded, l.mask = e, nil
}

func (l *line) keep(e *expr.Bitwise) {
	if l.loaded == nil || l.mask != nil || len(bytes.Trim(e.Xor, "\x00")) != 0 {
		l.unknown("bitwise")
		return
	}
	l.mask = e.Mask
}

// compare says what was loaded in the words of the option that tests it.
func (l *line) compare(e *expr.Cmp) {
	known := e.Op == expr.CmpOpEq || e.Op == expr.CmpOpNeq
	if known {
		not := ""
		if e.Op == expr.CmpOpNeq {
			not = " !"
		}
		switch loaded := l.loaded.(type) {
		case *expr.Meta:
			known = l.compareMeta(loaded.Key, not, e.Data)
		case *expr.Payload:
			known = l.comparePayload(loaded, not, e.Data)
		default:
			known = false
		}
	}
	if !known {
		l.unknown("cmp")
	}
}

func (l *line) compareMeta(key expr.MetaKey, not string, value []byte) bool {
	switch {
	case key == expr.MetaKeyMARK:
		return l.mark(not, value)
	case l.mask != nil || len(value) == 0:
		return false
	case key == expr.MetaKeyL4PROTO:
		name := protocolName(value[0])
		if not == "" {
			l.l4 = name
		}
		l.protocol = not + " -p " + name
	case key == expr.MetaKeyIIFNAME:
		l.in = interfaceOption(not, " -i ", value)
	case key == expr.MetaKeyOIFNAME:
		l.out = interfaceOption(not, " -o ", value)
	default:
		return false
	}
	return true
}

// protocolName is a protocol as iptables prints it: by name if it is one of
// xtables_chain_protos (libxtables/xtables.c, 1.8.9) or of those in
// /etc/protocols that packet filters meet.
func protocolName(number byte) string {
	names := map[byte]string{1: "icmp", 6: "tcp", 17: "udp", 50: "esp", 51: "ah",
		58: "ipv6-icmp", 132: "sctp", 135: "ipv6-mh", 136: "udplite"}
	if name, ok := names[number]; ok {
		return name
	}
	return strconv.Itoa(int(number))
}

// interfaceOption undoes phrase.InInterface.
func interfaceOption(not, option string, value []byte) string {
	name, whole := bytes.CutSuffix(value, []byte{0})
	switch {
	case whole && string(name) == "INVAL/D":
		return " !" + option + "+"
	case whole:
		return not + option + string(bytes.TrimRight(name, "\x00"))
	}
	return not + option + string(value) + "+"
}

func (l *line) mark(not string, value []byte) bool {
	if len(value) != 4 || l.mask != nil && len(l.mask) != 4 {
		return false
	}
	l.say(" -m mark%s --mark 0x%x", not, binary.NativeEndian.Uint32(value))
	if l.mask != nil && !bytes.Equal(l.mask, []byte{0xff, 0xff, 0xff, 0xff}) {
		l.say("/0x%x", binary.NativeEndian.Uint32(l.mask))
	}
	return true
}

// Where the addresses are in the network header; see package phrase.
var addressOffsets = map[model.Family]struct{ source, destination uint32 }{
	model.IPv4: {12, 16},
	model.IPv6: {8, 24},
}

func (l *line) comparePayload(p *expr.Payload, not string, value []byte) bool {
	if int(p.Len) != len(value) {
		return false
	}
	if p.Base == expr.PayloadBaseTransportHeader {
		return l.port(p, not, value)
	}
	at := addressOffsets[l.family]
	prefix, ok := l.prefix(value)
	switch {
	case !ok || p.Base != expr.PayloadBaseNetworkHeader:
		return false
	case p.Offset == at.source:
		l.source = not + " -s " + prefix
	case p.Offset == at.destination:
		l.destination = not + " -d " + prefix
	default:
		return false
	}
	return true
}

// prefix prints the beginning of an address, or a masked one.
func (l *line) prefix(value []byte) (string, bool) {
	whole := make([]byte, l.family.Bits()/8)
	if len(value) > len(whole) || l.mask != nil && len(l.mask) != len(whole) {
		return "", false
	}
	copy(whole, value)
	addr, _ := netip.AddrFromSlice(whole)
	if l.mask == nil {
		return netip.PrefixFrom(addr, 8*len(value)).String(), true
	}
	mask, _ := netip.AddrFromSlice(l.mask)
	if bits, ok := prefixLength(l.mask); ok {
		return netip.PrefixFrom(addr, bits).String(), true
	}
	return addr.String() + "/" + mask.String(), true
}

// prefixLength returns how many bits are set in mask, if they come first.
func prefixLength(mask []byte) (bits int, ok bool) {
	for bits < 8*len(mask) && mask[bits/8]&(0x80>>(bits%8)) != 0 {
		bits++
	}
	for rest := bits; rest < 8*len(mask); rest++ {
		if mask[rest/8]&(0x80>>(rest%8)) != 0 {
			return 0, false
		}
	}
	return bits, true
}

// port prints the test of a port, beside another one if that is just before.
func (l *line) port(p *expr.Payload, not string, value []byte) bool {
	option := map[uint32]string{0: "--sport", 2: "--dport"}[p.Offset]
	if option == "" || len(value) != 2 || l.mask != nil || l.l4 == "" {
		return false
	}
	if !l.ports {
		l.say(" -m %s", l.l4)
	}
	l.say("%s %s %d", not, option, binary.BigEndian.Uint16(value))
	l.ports = true
	return true
}
