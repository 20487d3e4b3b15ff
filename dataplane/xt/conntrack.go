package xt

import (
	"github.com/google/nftables/expr"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

// The layout of struct xt_conntrack_mtinfo3: eight addresses and masks,
// lifetimes, protocol and ports come before what is used here.
const (
	conntrackMatch  = 146
	conntrackInvert = 148
	conntrackStates = 150
	conntrackSize   = 164
)

// conntrackState is XT_CONNTRACK_STATE, the test of the state.
const conntrackState = 1 << 0

// conntrackStateAlias is XT_CONNTRACK_STATE_ALIAS: written as `-m state`.
const conntrackStateAlias = 1 << 13

// ConnState is a set of connection states.
type ConnState uint16

// The states: XT_CONNTRACK_STATE_INVALID and the XT_CONNTRACK_STATE_BIT of each
// of enum ip_conntrack_info in linux/netfilter/nf_conntrack_common.h.
const (
	Invalid     ConnState = 1 << 0
	Established ConnState = 1 << 1
	Related     ConnState = 1 << 2
	New         ConnState = 1 << 3
	SNATed      ConnState = 1 << 6
	DNATed      ConnState = 1 << 7
	Untracked   ConnState = 1 << 8
)

// ConntrackInfo is struct xt_conntrack_mtinfo3 of
// linux/netfilter/xt_conntrack.h with a test of the state and no other.
type ConntrackInfo struct {
	States ConnState
	Invert bool
	// Alias is true if the rule was written as `-m state`.
	Alias bool
}

// State tests that the packet's connection is in one of the states, as `-m
// conntrack --ctstate`.
func State(states ...ConnState) []expr.Any {
	return match("conntrack", 3, ConntrackInfo{States: union(states)})
}

// NotState is the opposite of State, as `-m conntrack ! --ctstate`.
func NotState(states ...ConnState) []expr.Any {
	return match("conntrack", 3, ConntrackInfo{States: union(states), Invert: true})
}

func union(states []ConnState) ConnState {
	var all ConnState
	for _, s := range states {
		all |= s
	}
	return all
}

func (i ConntrackInfo) encode() []byte {
	b := payload(conntrackSize)
	flags := uint16(conntrackState)
	if i.Alias {
		flags |= conntrackStateAlias
	}
	putUint16(b[conntrackMatch:], flags)
	if i.Invert {
		putUint16(b[conntrackInvert:], conntrackState)
	}
	putUint16(b[conntrackStates:], uint16(i.States))
	return b
}

func parseConntrack(_ model.Family, b []byte) (Info, error) {
	flags := uint16At(b, conntrackMatch)
	if flags&^conntrackStateAlias != conntrackState {
		return nil, ErrUnknown
	}
	return ConntrackInfo{
		States: ConnState(uint16At(b, conntrackStates)),
		Invert: uint16At(b, conntrackInvert)&conntrackState != 0,
		Alias:  flags&conntrackStateAlias != 0,
	}, nil
}
