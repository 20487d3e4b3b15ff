package conntrack

import (
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"github.com/ti-mo/netfilter"

	"github.com/nlproxy/nlproxy/dataplane/wire"
)

// Stats says how full the table of flows is and what went wrong in it, for the
// network namespace of the reader. The counters are sums over all CPUs since the
// namespace began; those of one CPU have 32 bits and wrap around
// (struct ip_conntrack_stat, linux/netfilter/nf_conntrack_common.h, Linux 6.18).
type Stats struct {
	// Entries is how many flows there are, those that are being made or
	// destroyed included, and Limit how many there may be: what
	// net/netfilter/nf_conntrack_max shows. 0 is for no limit.
	Entries, Limit uint32

	// InsertFailed counts packets that were lost because their new flow could
	// not enter the table: another one had taken one of its tuples, or its hash
	// bucket was too long.
	InsertFailed uint64
	// Drop counts packets that were lost because there was no room for their
	// flow, or because they clashed with a flow that was made at the same time.
	Drop uint64
	// EarlyDrop counts flows that had to make room for new ones in a full table.
	EarlyDrop uint64
	// Invalid counts packets that belong to no flow and may not begin one. They
	// are let through, for rules to drop.
	Invalid uint64
	// Error counts packets that were too broken to be looked at.
	Error uint64
	// ChainTooLong counts flows that were refused because a hash bucket already
	// held some 50 to 80: the table of buckets is too small. A packet that was
	// lost so is counted in InsertFailed too. Linux 5.15 and later.
	ChainTooLong uint64
	// ClashResolved counts packets that began the same flow at the same time as
	// others, on another CPU, and got through all the same, as two DNS requests
	// from one socket do. Linux 5.10 and later.
	ClashResolved uint64
	// SearchRestart counts look-ups that had to begin anew since an entry moved
	// to another bucket meanwhile, as it does while the hash table is resized.
	SearchRestart uint64
}

// Fill is how much of the table is used: 0 when it is empty, 1 when it is full,
// for a short time a little more, and 0 if it has no limit.
func (s Stats) Fill() float64 {
	if s.Limit == 0 {
		return 0
	}
	return float64(s.Entries) / float64(s.Limit)
}

// Messages and attributes of include/uapi/linux/netfilter/nfnetlink_conntrack.h.
const (
	ctGetStatsCPU netfilter.MessageType = 4 // IPCTNL_MSG_CT_GET_STATS_CPU
	ctGetStats    netfilter.MessageType = 5 // IPCTNL_MSG_CT_GET_STATS

	ctaStatsInvalid       = 4
	ctaStatsInsertFailed  = 9
	ctaStatsDrop          = 10
	ctaStatsEarlyDrop     = 11
	ctaStatsError         = 12
	ctaStatsSearchRestart = 13
	ctaStatsClashResolve  = 14 // since 5.10
	ctaStatsChainTooLong  = 15 // since 5.15

	ctaStatsGlobalEntries = 1
	ctaStatsGlobalMax     = 2
)

// ReadStats asks the kernel for the network namespace of the calling thread. It
// needs CAP_NET_ADMIN there. What each counter means is from
// net/netfilter/nf_conntrack_core.c, Linux 6.18.
//
// The limit comes with the number of flows, so no file is read. StatsGlobal of
// ti-mo/conntrack v0.6.0 never returns with mdlayher/netlink v1.11.2, which waits
// for the end of a reply that says that it has more parts and has none
// (ctnetlink_stat_ct_fill_info, net/netfilter/nf_conntrack_netlink.c); its Stats
// has neither ChainTooLong nor ClashResolved.
func ReadStats() (s Stats, err error) {
	socket, err := openSocket()
	if err != nil {
		return Stats{}, fmt.Errorf("connection tracking: %w", err)
	}
	defer func() { err = errors.Join(err, socket.close()) }()
	if err := socket.numbers(ctGetStats, netlink.Acknowledge, s.setGlobal); err != nil {
		return Stats{}, fmt.Errorf("connection tracking: number of flows: %w", err)
	}
	if err := socket.numbers(ctGetStatsCPU, netlink.Dump, s.addCPU); err != nil {
		return Stats{}, fmt.Errorf("connection tracking: counters: %w", err)
	}
	return s, nil
}

// numbers sends a request without attributes and hands all numbers of the
// replies to take, until the kernel's verdict.
func (s *socket) numbers(kind netfilter.MessageType, flags netlink.HeaderFlags, take func(kind uint16, n uint64)) error {
	if err := s.send(kind, flags, 0, nil); err != nil {
		return err
	}
	for {
		b, err := s.receive()
		if err != nil {
			return err
		}
		for m := range messages(b) {
			switch {
			case m.sequence != s.sequence:
			case m.kind != netlink.Error && m.kind != netlink.Done:
				m.numbers(take)
			case m.errno() != 0:
				return m.errno()
			default:
				return nil
			}
		}
	}
}

func (m message) numbers(take func(kind uint16, n uint64)) {
	if len(m.payload) < nfGenMessage {
		return
	}
	for kind, value := range wire.Attributes(m.payload[nfGenMessage:]) {
		take(kind, number(value))
	}
}

func (s *Stats) setGlobal(kind uint16, n uint64) {
	switch kind {
	case ctaStatsGlobalEntries:
		s.Entries = uint32(n)
	case ctaStatsGlobalMax:
		s.Limit = uint32(n)
	}
}

func (s *Stats) addCPU(kind uint16, n uint64) {
	if counter := s.counter(kind); counter != nil {
		*counter += n
	}
}

// counter returns nil for a counter that is of no interest, or no longer used.
func (s *Stats) counter(kind uint16) *uint64 {
	switch kind {
	case ctaStatsInsertFailed:
		return &s.InsertFailed
	case ctaStatsDrop:
		return &s.Drop
	case ctaStatsEarlyDrop:
		return &s.EarlyDrop
	case ctaStatsInvalid:
		return &s.Invalid
	case ctaStatsError:
		return &s.Error
	case ctaStatsChainTooLong:
		return &s.ChainTooLong
	case ctaStatsClashResolve:
		return &s.ClashResolved
	case ctaStatsSearchRestart:
		return &s.SearchRestart
	}
	return nil
}
