package plan

import (
	"net/netip"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// Established returns the endpoints with which an established flow to a
// frontend of that kind may stay: outside for a client that is neither a pod
// nor this node, inside for these. The two differ where an external policy
// Local exempts pods and the node.
//
// An endpoint that still serves keeps its flows, also while it terminates and
// where hints would now prefer another: what was decided when the flow began
// stays. Policy Local binds all the same, since replies of an endpoint
// elsewhere would not find back.
func (p Port) Established(kind FrontendKind) (outside, inside []netip.AddrPort) {
	serving := func(ep model.Endpoint) bool { return ep.Serving || ep.Ready }
	here := on(p.node)
	local := func(ep model.Endpoint) bool { return serving(ep) && here(ep) }
	switch {
	case kind == ClusterIP && p.InternalLocal:
		outside = addresses(p.endpoints, local)
		return outside, outside
	case kind != ClusterIP && p.ExternalLocal:
		return addresses(p.endpoints, local), addresses(p.endpoints, serving)
	}
	outside = addresses(p.endpoints, serving)
	return outside, outside
}

// Existing returns all endpoints of the port, whatever their state: those that
// still have a process to close a connection.
func (p Port) Existing() []netip.AddrPort { return addresses(p.endpoints, anywhere) }

func addresses(eps []model.Endpoint, accept func(model.Endpoint) bool) []netip.AddrPort {
	var all []netip.AddrPort
	for _, ep := range eps {
		if accept(ep) {
			all = append(all, ep.Addr)
		}
	}
	return all
}
