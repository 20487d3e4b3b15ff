package plan

import (
	"net/netip"
	"slices"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// state is how fit an endpoint is for new connections.
type state uint8

const (
	unfit state = iota
	// lastResort endpoints are terminating but still serve; they are used
	// where no ready one is left.
	lastResort
	ready
)

func stateOf(ep model.Endpoint) state {
	switch {
	case ep.Ready:
		return ready
	case ep.Serving && ep.Terminating:
		return lastResort
	}
	return unfit
}

// usable returns the ready endpoints among eps that accept allows, or else
// those of last resort that lastAccept allows.
func usable(eps []model.Endpoint, accept, lastAccept func(model.Endpoint) bool) []netip.AddrPort {
	if pool := inState(eps, ready, accept); len(pool) > 0 {
		return pool
	}
	return inState(eps, lastResort, lastAccept)
}

func inState(eps []model.Endpoint, want state, accept func(model.Endpoint) bool) []netip.AddrPort {
	var pool []netip.AddrPort
	for _, ep := range eps {
		if stateOf(ep) == want && accept(ep) {
			pool = append(pool, ep.Addr)
		}
	}
	return pool
}

func anywhere(model.Endpoint) bool { return true }

func on(node string) func(model.Endpoint) bool {
	return func(ep model.Endpoint) bool { return node != "" && ep.Node == node }
}

// near returns the test for endpoints whose hints give them to this node. The
// hints count only if every ready endpoint has one and at least one of them
// is for here, node hints before zone hints; else any endpoint will do.
func near(eps []model.Endpoint, node model.Node) func(model.Endpoint) bool {
	nodeHints := func(ep model.Endpoint) []string { return ep.Nodes }
	zoneHints := func(ep model.Endpoint) []string { return ep.Zones }
	switch {
	case hinted(eps, nodeHints, node.Name):
		return func(ep model.Endpoint) bool { return slices.Contains(ep.Nodes, node.Name) }
	case hinted(eps, zoneHints, node.Zone):
		return func(ep model.Endpoint) bool { return slices.Contains(ep.Zones, node.Zone) }
	}
	return anywhere
}

// hinted reports whether every ready endpoint has hints and one is for here.
func hinted(eps []model.Endpoint, hints func(model.Endpoint) []string, here string) bool {
	found := false
	for _, ep := range eps {
		if stateOf(ep) != ready {
			continue
		}
		if len(hints(ep)) == 0 {
			return false
		}
		found = found || slices.Contains(hints(ep), here)
	}
	return found
}

// ofFamily returns the endpoints of family f, in their order.
func ofFamily(eps []model.Endpoint, f model.Family) []model.Endpoint {
	other := func(ep model.Endpoint) bool { return model.FamilyOf(ep.Addr.Addr()) != f }
	if !slices.ContainsFunc(eps, other) {
		return eps
	}
	return slices.DeleteFunc(slices.Clone(eps), other)
}
