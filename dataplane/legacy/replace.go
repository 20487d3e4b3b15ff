package legacy

import "encoding/binary"

// replaceHeader is the size of struct ipt_replace
// (linux/netfilter_ipv4/ip_tables.h), which IPv6 has too by another name: the
// entries follow it.
const replaceHeader = 96

// countersAddress is where struct ipt_replace has the address of the memory
// into which the kernel writes the counters of the entries that are replaced.
const countersAddress = 88

// marshalReplace makes the argument of IPT_SO_SET_REPLACE: entries as described
// by i in place of old ones, of which there must be that many (the kernel says
// EAGAIN otherwise). The address at countersAddress is left open.
func marshalReplace(table string, i info, entries []byte, old uint32) []byte {
	b := make([]byte, 0, replaceHeader+len(entries))
	b = append(b, table...)
	b = append(b, make([]byte, nameSize-len(table))...)
	for _, v := range []uint32{i.validHooks, i.entries, i.size} {
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	for _, offsets := range [][hookCount]uint32{i.entry, i.underflow} {
		for _, v := range offsets {
			b = binary.NativeEndian.AppendUint32(b, v)
		}
	}
	b = binary.NativeEndian.AppendUint32(b, old)
	b = append(b, make([]byte, replaceHeader-countersAddress)...)
	return append(b, entries...)
}
