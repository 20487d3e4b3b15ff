package plan

import (
	"maps"
	"slices"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// Planner plans for one family. It remembers which frontends are claimed and
// how many endpoints there are, so that the cost of a plan follows what
// changed. It is not safe for concurrent use.
type Planner struct {
	family model.Family
	opts   Options

	claims    claims
	endpoints map[model.Name]int
	total     int

	// decided is what the last plan was made from; nil before the first.
	decided *basis
}

// basis is what every service's decision depends on besides its own facts.
type basis struct {
	decider decider
	comment bool
}

// New returns a planner for family f. The options must be valid.
func New(f model.Family, opts Options) *Planner {
	return &Planner{family: f, opts: opts, claims: newClaims(), endpoints: map[model.Name]int{}}
}

// Build plans the services of s that changed, or all of them: on the first
// call, if s.Changed is nil, and if something changed on which each decision
// depends, such as this node's name.
func (p *Planner) Build(s model.Snapshot) Plan {
	return p.build(s, s.Changed)
}

// BuildAll plans every service of s, whatever changed.
func (p *Planner) BuildAll(s model.Snapshot) Plan {
	return p.build(s, nil)
}

func (p *Planner) build(s model.Snapshot, changed map[model.Name]struct{}) Plan {
	if changed == nil || p.decided == nil {
		changed = p.everyName(s)
		p.decided = nil
	}
	affected := p.learn(s, changed)
	frame := p.opts.frame(p.family, s.Node, p.total)
	now := &basis{decider: p.decider(s.Node, frame), comment: frame.Comments}
	plan := Plan{Family: p.family, Frame: frame, Services: make(map[model.Name]Service, len(affected))}
	if p.decided == nil || !p.decided.equal(now) {
		plan.All = true
		maps.Copy(affected, p.everyName(s)) // and what is gone stays in it
	}
	p.decided = now
	for _, name := range slices.SortedFunc(maps.Keys(affected), model.Name.Compare) {
		p.planOne(&plan, now.decider, s.Services.Get(name), name)
	}
	return plan
}

// everyName returns all names in s or known from before.
func (p *Planner) everyName(s model.Snapshot) map[model.Name]struct{} {
	names := make(map[model.Name]struct{}, s.Services.Len())
	for svc := range s.Services.All() {
		names[svc.Name] = struct{}{}
	}
	for name := range p.endpoints {
		names[name] = struct{}{}
	}
	return names
}

// learn takes note of what the changed services claim and how many endpoints
// they have, and returns all services that need a decision.
func (p *Planner) learn(s model.Snapshot, changed map[model.Name]struct{}) map[model.Name]struct{} {
	affected := make(map[model.Name]struct{}, len(changed))
	for name := range changed {
		affected[name] = struct{}{}
		svc := s.Services.Get(name)
		p.count(name, svc)
		for _, other := range p.claims.set(name, decider{family: p.family, opts: p.opts}.claimed(svc)) {
			affected[other] = struct{}{}
		}
	}
	return affected
}

func (p *Planner) count(name model.Name, svc *model.Service) {
	p.total -= p.endpoints[name]
	delete(p.endpoints, name)
	if svc == nil {
		return
	}
	n := 0
	for _, port := range svc.Ports {
		n += len(ofFamily(svc.Endpoints[port.PortKey], p.family))
	}
	p.endpoints[name] = n
	p.total += n
}

func (p *Planner) decider(node model.Node, frame Frame) decider {
	return decider{
		family:         p.family,
		opts:           p.opts,
		node:           node,
		local:          p.opts.local(p.family, node),
		countLocalhost: frame.GuardLocalnet && p.opts.Counters.LocalhostNodePorts,
	}
}

// equal leaves out the node's interface addresses, which come and go with
// every pod and which no service's decision depends on.
func (b *basis) equal(o *basis) bool {
	mine, other := b.decider.node, o.decider.node
	mine.Local, other.Local = nil, nil
	return mine.Equal(other) && b.comment == o.comment && b.decider.local == o.decider.local &&
		b.decider.countLocalhost == o.decider.countLocalhost
}

func (p *Planner) planOne(plan *Plan, d decider, svc *model.Service, name model.Name) {
	if svc == nil {
		plan.Services[name] = Service{Name: name}
		return
	}
	planned := d.service(svc)
	for i := range planned.Ports {
		plan.Conflicts = append(plan.Conflicts, p.claims.concede(&planned.Ports[i])...)
	}
	plan.Services[name] = planned
}
