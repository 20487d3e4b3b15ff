package dataplane

import (
	"context"
	"sync"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"go.uber.org/zap"
)

// Dataplane is one node's rules. Its methods may be called from any goroutine
// and are carried out one at a time.
type Dataplane struct {
	opts Options

	mu       sync.Mutex
	planners map[model.Family]*plan.Planner
	// state is what the kernel holds; nil when that is not known.
	state *rules.State
	// generation is that of the ruleset after our last transaction.
	generation uint32
	// listed is when everything was compared, and touched says that somebody
	// else has changed the ruleset since.
	listed  time.Time
	touched bool
	// owed are the services whose last change did not reach the kernel.
	owed  map[model.Name]struct{}
	aside asides
	// stuck are chains that we cannot delete since rules of others use them.
	stuck map[rules.ChainID]struct{}
	// missing are the families that this kernel does not have, or refused.
	missing map[model.Family]error
	// localnet says that RouteLocalnet has been done.
	localnet bool

	// noLocal tells which services have endpoints on other nodes alone.
	noLocal noLocal
	// triggers are those of changes that did not reach the kernel yet.
	triggers triggers
	// intruder is who overwrites our rules.
	intruder intruder
}

// New returns a Dataplane that has not looked at the kernel yet.
func New(o Options) (*Dataplane, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	d := &Dataplane{
		opts:     o,
		planners: map[model.Family]*plan.Planner{},
		owed:     map[model.Name]struct{}{},
		aside:    asides{byName: map[model.Name]*Aside{}, retry: o.RetryAside},
		stuck:    map[rules.ChainID]struct{}{},
		missing:  map[model.Family]error{},
		noLocal:  noLocal{},
		triggers: triggers{of: map[model.Name][]model.Trigger{}},
		intruder: intruder{log: o.Logger},
	}
	for _, f := range model.Families {
		d.planners[f] = plan.New(f, o.Plan)
	}
	return d, nil
}

// Set makes the kernel agree with s. After an error it may be called again
// with the same or a newer snapshot of the same source; what was not done is
// remembered. It ends early, between transactions, when ctx is done.
func (d *Dataplane) Set(ctx context.Context, s model.Snapshot) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	report := Report{Services: s.Services.Len(), Written: map[rules.Table]int{}}
	start, overwritten := time.Now(), d.intruder.all
	report.Err = d.set(ctx, s, &report)
	report.Duration = time.Since(start)
	report.Overwritten = d.intruder.all - overwritten
	d.complete(&report)
	d.log(report, s.Changed)
	if d.opts.Observer != nil {
		d.opts.Observer(report)
	}
	return report.Err
}

// complete fills in what is so after a Set, whatever it did.
func (d *Dataplane) complete(r *Report) {
	r.Aside = d.aside.list()
	for _, f := range model.Families {
		if d.missing[f] == nil {
			r.Families = append(r.Families, f)
		}
	}
	if d.state != nil {
		r.Rules = d.state.Rules()
	}
	if r.Err == nil {
		r.NoLocal = d.noLocal.count()
		r.Triggers = d.triggers.take(func(name model.Name) bool { return !d.aside.has(name) })
	}
}

func (d *Dataplane) set(ctx context.Context, s model.Snapshot, report *Report) error {
	d.triggers.await(s)
	d.owe(s)
	d.verify()
	s.Changed = d.owed
	if err := d.program(ctx, s, report); err != nil {
		return err
	}
	d.owed = map[model.Name]struct{}{}
	d.retryAside(ctx, s, report)
	d.openLocalhost(s.Node)
	return nil
}

// owe adds what s changed to what is to be done. What was set aside is worth
// another try when it has changed.
func (d *Dataplane) owe(s model.Snapshot) {
	if s.Changed == nil {
		for svc := range s.Services.All() {
			d.owed[svc.Name] = struct{}{}
		}
		d.state = nil
		return
	}
	for name := range s.Changed {
		d.owed[name] = struct{}{}
		d.aside.forgive(name)
	}
}

// oweAll adds what is planned to what is to be done. A planner tells only once
// for whom else a change matters, and its plan may have to be made again.
func (d *Dataplane) oweAll(plans []plan.Plan) {
	for _, p := range plans {
		for name := range p.Services {
			d.owed[name] = struct{}{}
		}
	}
}

func (d *Dataplane) plan(s model.Snapshot, report *Report) []plan.Plan {
	var plans []plan.Plan
	report.Planned, report.Conflicts = 0, nil
	for _, f := range model.Families {
		build := d.planners[f].Build
		if report.Full {
			build = d.planners[f].BuildAll
		}
		p := build(s)
		plans = append(plans, p)
		report.Planned = max(report.Planned, len(p.Services))
		report.Conflicts = append(report.Conflicts, p.Conflicts...)
	}
	return plans
}

// openLocalhost has packets from 127.0.0.0/8 routed, once the rule that guards
// them is there. A node where that cannot be set serves all the rest.
func (d *Dataplane) openLocalhost(node model.Node) {
	if d.localnet || d.opts.RouteLocalnet == nil || !d.opts.Plan.NeedsRouteLocalnet(node) {
		return
	}
	d.localnet = true
	if err := d.opts.RouteLocalnet(); err != nil {
		d.opts.Logger.Warn("node ports on 127.0.0.0/8 will not work: set net.ipv4.conf.all.route_localnet to 1 on this node, "+
			"or iptables.localhostNodePorts (--iptables-localhost-nodeports) to false", zap.Error(err))
	}
}
