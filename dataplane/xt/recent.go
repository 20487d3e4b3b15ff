package xt

import (
	"bytes"

	"github.com/google/nftables/expr"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

// The layout of struct xt_recent_mtinfo_v1.
const (
	recentFlags   = 8
	recentInvert  = 9
	recentName    = 10
	recentNameLen = 200 // XT_RECENT_NAME_LEN, with the NUL
	recentSide    = recentName + recentNameLen
	recentMask    = 212
	recentSize    = 228
)

// What a RecentInfo does, bits of its Flags: XT_RECENT_CHECK and so on.
const (
	RecentFlagCheck uint8 = 1 << iota
	RecentFlagSet
	RecentFlagUpdate
	RecentFlagRemove
	RecentFlagTTL
	RecentFlagReap
)

// RecentInfo is struct xt_recent_mtinfo_v1 of linux/netfilter/xt_recent.h.
type RecentInfo struct {
	// Seconds is the age at which an entry no longer counts; 0 for no limit.
	Seconds uint32
	// HitCount is how many packets an entry must have seen; 0 for any.
	HitCount uint32
	Flags    uint8
	Invert   bool
	// Name is the list's, at most 199 bytes.
	Name string
	// Destination is true where the packet's destination address is looked up
	// (--rdest) and not its source.
	Destination bool
	// Mask is applied to the address first. For IPv4 its first 4 bytes count.
	Mask [16]byte
}

// hostMask keeps all of an address, of either family.
var hostMask = [16]byte(bytes.Repeat([]byte{0xff}, 16))

// RecentCheck tests that the source address is in the named list and no older
// than seconds, and clears older entries, as `-m recent --rcheck --seconds
// SECONDS --reap --name NAME --rsource`.
func RecentCheck(name string, seconds uint32) []expr.Any {
	return match("recent", 1, RecentInfo{
		Seconds: seconds, Flags: RecentFlagCheck | RecentFlagReap, Name: name, Mask: hostMask,
	})
}

// RecentSet puts the source address into the named list, as `-m recent --set
// --name NAME --rsource`.
func RecentSet(name string) []expr.Any {
	return match("recent", 1, RecentInfo{Flags: RecentFlagSet, Name: name, Mask: hostMask})
}

func (i RecentInfo) encode() []byte {
	b := payload(recentSize)
	putUint32(b, i.Seconds)
	putUint32(b[4:], i.HitCount)
	b[recentFlags] = i.Flags
	b[recentInvert] = flag(i.Invert)
	copy(b[recentName:], fitting(i.Name, recentNameLen-1))
	b[recentSide] = flag(i.Destination)
	copy(b[recentMask:], i.Mask[:])
	return b
}

func parseRecent(_ model.Family, b []byte) (Info, error) {
	return RecentInfo{
		Seconds: uint32At(b, 0), HitCount: uint32At(b, 4),
		Flags: b[recentFlags], Invert: b[recentInvert] != 0,
		Name:        text(b[recentName:recentSide]),
		Destination: b[recentSide] != 0,
		Mask:        [16]byte(b[recentMask:recentSize]),
	}, nil
}
