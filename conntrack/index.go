package conntrack

import (
	"net/netip"
	"slices"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
)

// Orphan says how a flow came to lead where it should not any more.
type Orphan uint8

const (
	// EndpointGone: its endpoint is no longer one of the service, or, if it is
	// not TCP or SCTP, no longer serves.
	EndpointGone Orphan = iota + 1
	// EndpointElsewhere: its endpoint is not on this node, as an external
	// traffic policy Local by now demands; one that an internal policy Local
	// excludes counts as gone.
	EndpointElsewhere
	// NotTranslated: it began before the service was served here and is
	// answered, if at all, by the service's address itself.
	NotTranslated
	// ServiceGone: its destination belongs to no service any more.
	ServiceGone
)

// Orphans lists all, for loops over them.
var Orphans = [...]Orphan{EndpointGone, EndpointElsewhere, NotTranslated, ServiceGone}

// String returns it in words.
func (o Orphan) String() string {
	return [...]string{"none", "endpoint gone", "endpoint elsewhere", "not translated", "service gone"}[o]
}

// index finds, for the destination of a flow, the endpoints with which it may
// stay. Its cost follows the number of frontends, and that of an update those
// of the services that a plan decides.
type index struct {
	protocols []model.Protocol
	// targets by destination, and held are the destinations of each service.
	targets map[destination]*target
	held    map[owner][]destination
	// scopes say on which of the node's addresses node ports are, served are
	// these, and local all addresses of the node.
	scopes        map[model.Family]plan.NodePortScope
	served, local map[netip.Addr]struct{}
	// generation counts the updates that may have made flows stale.
	generation uint64
}

// destination is where a flow's first packet was sent to. The address of a
// node port is the unspecified one of its family.
type destination struct {
	at       netip.AddrPort
	protocol model.Protocol
}

// owner is a service in one family.
type owner struct {
	family model.Family
	name   model.Name
}

func newIndex(protocols []model.Protocol) *index {
	return &index{
		protocols: protocols,
		targets:   map[destination]*target{},
		held:      map[owner][]destination{},
		scopes:    map[model.Family]plan.NodePortScope{},
	}
}

// update takes over what has been decided, and reports whether flows that were
// right may have become stale by it.
func (x *index) update(plans []plan.Plan, node model.Node) bool {
	changed := false
	for _, p := range plans {
		x.scopes[p.Family] = p.Frame.NodePorts
		changed = x.learn(p) || changed
	}
	changed = x.locate(node) || changed
	if changed {
		x.generation++
	}
	return changed
}

// learn replaces the targets of the services in p. Those which a service lost
// to another one in p are its no more when the other's are added.
func (x *index) learn(p plan.Plan) (changed bool) {
	next := map[owner]map[destination]*target{}
	for name, svc := range p.Services {
		next[owner{p.Family, name}] = x.targetsOf(p.Family, svc)
	}
	if p.All {
		for o := range x.held {
			if _, planned := next[o]; o.family == p.Family && !planned {
				next[o] = nil
			}
		}
	}
	for o, targets := range next {
		changed = x.release(o, targets) || changed
	}
	for o, targets := range next {
		changed = x.hold(o, targets) || changed
	}
	return changed
}

// targetsOf returns the targets of a service's ports, as far as their flows are
// looked after.
func (x *index) targetsOf(f model.Family, svc plan.Service) map[destination]*target {
	targets := map[destination]*target{}
	for _, p := range svc.Ports {
		if !slices.Contains(x.protocols, p.Name.Protocol) {
			continue
		}
		var cluster, public *target
		for _, front := range p.Frontends {
			d := destinationOf(f, front, p.Name.Protocol)
			if _, decided := targets[d]; decided {
				continue // as by the rules, of which the first counts
			}
			use := &public
			if front.Kind == plan.ClusterIP {
				use = &cluster
			}
			if *use == nil {
				*use = newTarget(p, front.Kind)
			}
			targets[d] = *use
		}
	}
	return targets
}

func destinationOf(f model.Family, front plan.Frontend, p model.Protocol) destination {
	if front.Kind == plan.NodePort {
		return nodePort(f, front.Port, p)
	}
	return destination{netip.AddrPortFrom(front.Addr.Unmap(), front.Port), p}
}

func nodePort(f model.Family, port uint16, p model.Protocol) destination {
	if f == model.IPv4 {
		return destination{netip.AddrPortFrom(netip.IPv4Unspecified(), port), p}
	}
	return destination{netip.AddrPortFrom(netip.IPv6Unspecified(), port), p}
}

// release turns those of a service's destinations that are not among next into
// tombstones, with which no flow may stay. A service of which no plan told for a
// while may have lost some to another one, which has given them up since.
func (x *index) release(o owner, next map[destination]*target) (changed bool) {
	for _, d := range x.held[o] {
		t := x.targets[d]
		if _, stays := next[d]; !stays && t != nil && t.service.Name == o.name {
			x.targets[d] = &target{service: t.service, gone: x.generation + 1}
			changed = true
		}
	}
	delete(x.held, o)
	return changed
}

func (x *index) hold(o owner, next map[destination]*target) (changed bool) {
	for d, t := range next {
		changed = changed || t.orphans(x.targets[d])
		x.targets[d] = t
		x.held[o] = append(x.held[o], d)
	}
	return changed
}

// forget drops the tombstones of a generation and those before it.
func (x *index) forget(generation uint64) {
	for d, t := range x.targets {
		if t.gone != 0 && t.gone <= generation {
			delete(x.targets, d)
		}
	}
}

// locate takes note of the node's addresses. One on which node ports are served
// by now may have had flows before that; link-local ones do not count in this,
// since every pod may bring one.
func (x *index) locate(node model.Node) (changed bool) {
	served, local := map[netip.Addr]struct{}{}, map[netip.Addr]struct{}{}
	for _, a := range node.Addresses {
		local[a.Unmap()] = struct{}{}
	}
	for _, a := range node.Local {
		a = a.Unmap()
		local[a] = struct{}{}
		if !inScope(x.scopes[model.FamilyOf(a)], a) {
			continue
		}
		served[a] = struct{}{}
		if _, before := x.served[a]; !before && !a.IsLinkLocalUnicast() {
			changed = changed || x.hasNodePorts()
		}
	}
	x.served, x.local = served, local
	return changed
}

func (x *index) hasNodePorts() bool {
	for d := range x.targets {
		if d.at.Addr().IsUnspecified() {
			return true
		}
	}
	return false
}

// inScope reports whether node ports are served on an address of the node.
func inScope(s plan.NodePortScope, a netip.Addr) bool {
	if !s.All {
		return slices.Contains(s.Addrs, a)
	}
	return !s.Except.IsValid() || !s.Except.Contains(a)
}

// find returns the target of a flow, nil if no service has its destination. A
// tombstone does not hide a node port, to which its flows go by now.
func (x *index) find(f *Flow) *target {
	to := f.Original.Destination
	exact := x.targets[destination{to, f.Protocol}]
	if exact != nil && exact.gone == 0 {
		return exact
	}
	t := x.targets[nodePort(f.Family, to.Port(), f.Protocol)]
	if t == nil || !x.serves(to.Addr()) {
		return exact
	}
	return t
}

// serves reports whether node ports are served on a. All of 127.0.0.0/8 is
// local, though only one address of it is on an interface.
func (x *index) serves(a netip.Addr) bool {
	if _, ok := x.served[a]; ok {
		return true
	}
	scope := x.scopes[model.IPv4]
	return a.Is4() && a.IsLoopback() && scope.All && inScope(scope, a)
}

// stale reports whether a flow leads where it should not lead any more.
func (x *index) stale(f *Flow) (Orphan, bool) {
	t := x.find(f)
	if t == nil {
		return 0, false
	}
	return t.stale(f, x.isLocal(f.Original.Source.Addr()))
}

func (x *index) isLocal(a netip.Addr) bool {
	_, ok := x.local[a]
	return ok || a.IsLoopback()
}
