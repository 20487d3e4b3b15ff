package conntrack

import (
	"net/netip"
	"slices"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
)

// target is where the flows to some frontends of a service port may lead.
type target struct {
	service model.PortName
	// outside are the endpoints with which flows of clients outside of the
	// cluster may stay, inside those for pods and this node, both sorted; what
	// is in outside is in inside as well.
	outside, inside []netip.AddrPort
	pods            plan.Local
	// gone is the generation in which the frontend ceased to be one; 0 while
	// it is.
	gone uint64
}

// newTarget returns the target of a port's frontends of a kind.
//
// A TCP or SCTP connection may stay as long as its endpoint exists at all,
// which then can close it: cut off, it would hang until the peer gives up.
func newTarget(p plan.Port, kind plan.FrontendKind) *target {
	t := &target{service: p.Name, pods: p.Pods}
	if t.connected() {
		t.outside = sorted(p.Existing())
		t.inside = t.outside
		return t
	}
	outside, inside := p.Established(kind)
	t.outside = sorted(outside)
	t.inside = t.outside
	if len(inside) != len(outside) {
		t.inside = sorted(inside)
	}
	return t
}

// connected reports whether both ends keep a state for each flow.
func (t *target) connected() bool { return t.service.Protocol != model.UDP }

// sorted returns a sorted copy of addrs, each once.
func sorted(addrs []netip.AddrPort) []netip.AddrPort {
	set := make([]netip.AddrPort, len(addrs))
	for i, a := range addrs {
		set[i] = netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
	}
	slices.SortFunc(set, netip.AddrPort.Compare)
	return slices.Compact(set)
}

func has(set []netip.AddrPort, a netip.AddrPort) bool {
	_, found := slices.BinarySearchFunc(set, a, netip.AddrPort.Compare)
	return found
}

// orphans reports whether flows that were right under before, nil for none, may
// be stale under t. Where there was no endpoint before, or no service, flows may
// have begun that are not translated; more endpoints make no flow stale.
func (t *target) orphans(before *target) bool {
	return before == nil || before.gone != 0 || t.pods != before.pods ||
		outgrew(before.outside, t.outside) || outgrew(before.inside, t.inside)
}

func outgrew(before, now []netip.AddrPort) bool {
	if len(before) == 0 {
		return len(now) > 0
	}
	return slices.ContainsFunc(before, func(a netip.AddrPort) bool { return !has(now, a) })
}

// stale judges a flow to t whose client is, or is not, this node.
//
// What is not translated stays if it is a connection, which then has another
// peer than an endpoint of ours, or if the destination is no frontend any more.
// In a zone of somebody else's, such as a virtual switch, it stays too: packets
// pass that zone before they are translated in ours.
func (t *target) stale(f *Flow, fromNode bool) (Orphan, bool) {
	allowed := t.outside
	if fromNode || t.mayBePod(f.Original.Source.Addr()) {
		allowed = t.inside
	}
	switch {
	case has(allowed, f.Reply.Source):
		return 0, false
	case !f.Translated():
		return NotTranslated, !t.connected() && t.gone == 0 && f.Zone == 0
	case t.gone != 0:
		return ServiceGone, true
	case has(t.inside, f.Reply.Source):
		return EndpointElsewhere, true
	}
	return EndpointGone, true
}

// mayBePod: where pods are told by the interface that they come in through,
// which a flow does not show, anybody may be one.
func (t *target) mayBePod(client netip.Addr) bool {
	return t.pods.Interface != "" || t.pods.Source.IsValid() && t.pods.Source.Contains(client)
}
