package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"go.uber.org/zap"
)

const defaultRetry = 5 * time.Second

// PortsOptions configures Ports.
type PortsOptions struct {
	// Healthy reports whether rules are written in time, as Server.Healthy does.
	// It must not wait. Required.
	Healthy func() bool
	// Failed, if set, is called when the port of a service cannot be opened, and
	// again only after it could be. It must not wait.
	Failed func(service model.Name, port uint16, err error)
	// Retry is how soon a port that could not be opened is tried again. 0 means
	// 5 seconds.
	Retry time.Duration
	// Logger is warned as Failed is; nil for none.
	Logger *zap.Logger
}

// Validate names the first field that cannot be used.
func (o PortsOptions) Validate() error {
	switch {
	case o.Healthy == nil:
		return errors.New("health: Healthy is missing")
	case o.Retry < 0:
		return fmt.Errorf("health: Retry %v is negative", o.Retry)
	}
	return nil
}

// Ports answers balancers that ask on a service's health-check node port
// whether this node has endpoints for it.
//
// kube-proxy answers for each family by itself, on a socket of its own. Here
// one socket takes both, and the family of the connection says which endpoints
// are counted: a balancer gets the answer that is true for its own traffic.
type Ports struct {
	opts PortsOptions
	// listen is a seam for tests.
	listen func(context.Context, place) (net.Listener, error)
	// wake has room for one: there is something to open or to close.
	wake    chan struct{}
	failing atomic.Int64

	mu     sync.RWMutex
	scopes map[model.Family]plan.NodePortScope // of the families that are served
	checks map[model.Name]*check
	// aside are the services whose rules cannot be written.
	aside map[model.Name]bool
	// moved are checks that may have to listen elsewhere, or not any more.
	moved map[*check]bool
}

// check is what a balancer asks about: a service on one port. It is current as
// long as it is in Ports.checks.
type check struct {
	service model.Name
	port    uint16
	// ready is how many endpoints are here, for each family that the service has.
	ready map[model.Family]int
}

// NewPorts returns Ports that know no service.
func NewPorts(o PortsOptions) (*Ports, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Retry == 0 {
		o.Retry = defaultRetry
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Failed == nil {
		o.Failed = func(model.Name, uint16, error) {}
	}
	return &Ports{
		opts:   o,
		listen: listen,
		wake:   make(chan struct{}, 1),
		scopes: map[model.Family]plan.NodePortScope{},
		checks: map[model.Name]*check{},
		moved:  map[*check]bool{},
	}, nil
}

// Update takes over what has been decided and written into the kernel: it is
// made to be dataplane's Options.Committed. Answers are up to date when it
// returns, which is at once; Run opens and closes ports after that.
func (p *Ports) Update(plans []plan.Plan, _ model.Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	planned := map[model.Family]bool{}
	for _, each := range plans {
		planned[each.Family] = true
		p.learn(each)
	}
	for _, f := range model.Families {
		if _, before := p.scopes[f]; before && !planned[f] { // this kernel does not serve it any more
			p.learn(plan.Plan{Family: f, All: true})
			delete(p.scopes, f)
		}
	}
	if len(p.moved) > 0 {
		p.stir()
	}
}

// SetAside says which services' rules cannot be written: those and no others.
// The last decisions about them are not in force, so that nothing good can be
// told of them.
func (p *Ports) SetAside(services ...model.Name) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.aside = nil
	for _, name := range services {
		if p.aside == nil {
			p.aside = map[model.Name]bool{}
		}
		p.aside[name] = true
	}
}

// Failing is for how many services a port cannot be opened now.
func (p *Ports) Failing() int { return int(p.failing.Load()) }

// stir has Run look at what moved.
func (p *Ports) stir() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// learn takes over one family's decisions.
func (p *Ports) learn(of plan.Plan) {
	if before, known := p.scopes[of.Family]; !known || !sameScope(of.Frame.NodePorts, before) {
		p.scopes[of.Family] = of.Frame.NodePorts
		for _, c := range p.checks {
			p.moved[c] = true
		}
	}
	for name, svc := range of.Services {
		p.set(name, of.Family, svc.HealthCheck(), svc.ReadyHere)
	}
	if !of.All {
		return
	}
	for name := range p.checks {
		if _, planned := of.Services[name]; !planned {
			p.set(name, of.Family, 0, 0)
		}
	}
}

// set says on which port a service is asked for in one family, 0 for none, and
// how many endpoints are ready here.
func (p *Ports) set(service model.Name, f model.Family, port uint16, ready int) {
	c := p.checks[service]
	if port == 0 {
		p.unset(c, f)
		return
	}
	if c == nil || c.port != port {
		if c != nil {
			p.moved[c] = true
		}
		c = &check{service: service, port: port, ready: map[model.Family]int{}}
		p.checks[service] = c
	}
	if _, known := c.ready[f]; !known {
		p.moved[c] = true
	}
	c.ready[f] = ready
}

func (p *Ports) unset(c *check, f model.Family) {
	if c == nil {
		return
	}
	if _, known := c.ready[f]; !known {
		return
	}
	p.moved[c] = true
	delete(c.ready, f)
	if len(c.ready) == 0 {
		delete(p.checks, c.service)
	}
}

// state is what is true for c in one family. A check that is not current has no
// endpoints.
func (p *Ports) state(c *check, f model.Family) (ready int, current, aside bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.checks[c.service] != c {
		return 0, false, false
	}
	return c.ready[f], true, p.aside[c.service]
}
