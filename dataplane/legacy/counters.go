package legacy

import "encoding/binary"

// countersSize is the size of struct xt_counters (linux/netfilter/x_tables.h):
// packets and bytes, 64 bits each.
const countersSize = 16

// counterHeader is where the counters begin in struct xt_counters_info
// (linux/netfilter/x_tables.h): after the table's name, their number, and four
// bytes that align them.
const counterHeader = nameSize + 8

// marshalCounters makes the argument of IPT_SO_SET_ADD_COUNTERS: a struct
// xt_counters_info with one struct xt_counters for each entry of the table.
func marshalCounters(table string, counters []byte) []byte {
	b := make([]byte, counterHeader, counterHeader+len(counters))
	copy(b, table)
	binary.NativeEndian.PutUint32(b[nameSize:], uint32(len(counters)/countersSize))
	return append(b, counters...)
}
