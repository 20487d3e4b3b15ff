package legacy

import (
	"encoding/binary"
	"fmt"
)

const (
	// nameSize is that of the name of a table, XT_TABLE_MAXNAMELEN of
	// linux/netfilter/x_tables.h.
	nameSize = 32
	// hookCount is NF_INET_NUMHOOKS of linux/netfilter.h.
	hookCount = 5
	// maxTable is the size in bytes of the largest table that the kernel takes
	// (XT_MAX_TABLE_SIZE, net/netfilter/x_tables.c, Linux 6.18).
	maxTable = 512 << 20
)

// hookNames are the base chains as iptables calls them, by hook.
var hookNames = [hookCount]string{"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}

// info describes a table: struct ipt_getinfo of
// linux/netfilter_ipv4/ip_tables.h, which IPv6 has too by another name. Values
// that compare equal describe tables of the same shape.
type info struct {
	// validHooks has a bit for each hook that the table has.
	validHooks uint32
	hooks
	entries, size uint32
}

// hooks are offsets in the table, by hook.
type hooks struct {
	// entry is where packets begin, and underflow the policy, which is the last
	// entry of a base chain.
	entry, underflow [hookCount]uint32
}

// infoSize is the size of struct ipt_getinfo.
const infoSize = nameSize + 4 + hooksSize + 4 + 4

const hooksSize = 2 * hookCount * 4

func unmarshalInfo(b []byte) (i info, err error) {
	if len(b) != infoSize {
		return i, fmt.Errorf("information of %d bytes, want %d", len(b), infoSize)
	}
	i.validHooks = binary.NativeEndian.Uint32(b[nameSize:])
	at := nameSize + 4
	for _, offsets := range []*[hookCount]uint32{&i.entry, &i.underflow} {
		for hook := range offsets {
			offsets[hook] = binary.NativeEndian.Uint32(b[at:])
			at += 4
		}
	}
	i.entries = binary.NativeEndian.Uint32(b[at:])
	i.size = binary.NativeEndian.Uint32(b[at+4:])
	if i.size > maxTable {
		return i, fmt.Errorf("table of %d bytes, want at most %d", i.size, maxTable)
	}
	return i, nil
}

// has reports whether the table has that hook.
func (i info) has(hook int) bool { return i.validHooks&(1<<hook) != 0 }
