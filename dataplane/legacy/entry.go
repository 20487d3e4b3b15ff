package legacy

import (
	"encoding/binary"
	"fmt"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// layout is where the fields are in an entry: struct ipt_entry of
// linux/netfilter_ipv4/ip_tables.h and struct ip6t_entry of
// linux/netfilter_ipv6/ip6_tables.h, the same for all 64-bit machines from the
// first version of x_tables to Linux 6.18. Matches follow, then the target.
type layout struct {
	// targetOffset is a 16-bit field: where the target begins, counted from the
	// entry. The entry's size, next_offset, follows it.
	targetOffset int
	// size is that of the struct.
	size int
}

// layouts by family.
var layouts = map[model.Family]layout{
	model.IPv4: {targetOffset: 88, size: 112},
	model.IPv6: {targetOffset: 140, size: 168},
}

// alignment is that of entries, matches and targets (XT_ALIGN of
// linux/netfilter/x_tables.h).
const alignment = 8

// entry is one rule, policy, or beginning or end of a chain.
type entry struct {
	// offset is where it begins in the table.
	offset int
	// chain is the index of the one it belongs to; base for the base chains.
	chain int
	target
}

// unmarshalEntry reads the entry at offset and returns its size.
func (l layout) unmarshalEntry(table []byte, offset int) (e entry, size int, err error) {
	b := table[offset:]
	if len(b) < l.size+targetHeader {
		return entry{}, 0, fmt.Errorf("entry at %d: cut short", offset)
	}
	begin := int(binary.NativeEndian.Uint16(b[l.targetOffset:]))
	size = int(binary.NativeEndian.Uint16(b[l.targetOffset+2:]))
	if begin < l.size || size < begin+targetHeader || size > len(b) || begin%alignment != 0 || size%alignment != 0 {
		return entry{}, 0, fmt.Errorf("entry at %d: target at %d of %d bytes", offset, begin, size)
	}
	e = entry{offset: offset, chain: base}
	if e.target, err = unmarshalTarget(b[begin:size]); err != nil {
		return entry{}, 0, fmt.Errorf("entry at %d: %w", offset, err)
	}
	return e, size, nil
}

// setVerdict gives the entry b, which has a standard target, another verdict.
func (l layout) setVerdict(b []byte, v verdict) {
	begin := binary.NativeEndian.Uint16(b[l.targetOffset:])
	binary.NativeEndian.PutUint32(b[begin+targetHeader:], uint32(v))
}
