package conntrack

import (
	"fmt"
	"net/netip"

	"github.com/nlproxy/nlproxy/dataplane/model"
	ct "github.com/ti-mo/conntrack"
)

// Tuple is what packets of one direction of a flow have in common. The ports
// of protocols that have none are 0.
type Tuple struct {
	Source, Destination netip.AddrPort
}

// String returns "source -> destination".
func (t Tuple) String() string { return t.Source.String() + " -> " + t.Destination.String() }

// Flow is an entry of the kernel's connection tracking table.
type Flow struct {
	Family   model.Family
	Protocol model.Protocol

	// Original is as the first packet came, before any translation, and Reply
	// as answers come: Reply.Source is who was chosen to answer, and equals
	// Original.Destination if the destination was not translated.
	Original, Reply Tuple

	// Zone is the zone of the original direction; 0 is the default one.
	Zone uint16
	// ID tells the flow from a later one with the same original tuple, as far
	// as that lies elsewhere in memory (nf_ct_get_id,
	// net/netfilter/nf_conntrack_core.c, since 5.2). 0 if it is not known.
	ID uint32

	Status ct.Status
	// TCPState is the state of a TCP connection, 0 for other protocols: enum
	// tcp_conntrack, include/uapi/linux/netfilter/nf_conntrack_tcp.h.
	TCPState uint8
	// Timeout is the number of seconds that are left if no more packets come.
	Timeout uint32
}

// Translated reports whether the flow's destination was translated.
func (f *Flow) Translated() bool { return f.Reply.Source != f.Original.Destination }

// String returns the flow's protocol and both tuples.
func (f *Flow) String() string {
	return fmt.Sprintf("%s %s, answered %s", f.Protocol, f.Original, f.Reply)
}
