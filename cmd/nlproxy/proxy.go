package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/nlproxy/nlproxy/cmd/internal/events"
	"github.com/nlproxy/nlproxy/cmd/internal/health"
	"github.com/nlproxy/nlproxy/cmd/internal/memory"
	"github.com/nlproxy/nlproxy/cmd/internal/metrics"
	"github.com/nlproxy/nlproxy/cmd/internal/ready"
	"github.com/nlproxy/nlproxy/conntrack"
	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"github.com/nlproxy/nlproxy/watch"
	"go.uber.org/zap"
)

// proxyOptions are what a configuration does not say.
type proxyOptions struct {
	// Ready is told when the node is served; nil for nobody.
	Ready *ready.Notifier
	// Clients are the API clients of the process; nil to leave them uncounted.
	Clients *metrics.Clients
	// SetVerbosity changes how much is logged.
	SetVerbosity func(level string) error
	// Refused says that a newer configuration cannot be used; nil if there is none.
	Refused func() bool
	// Observe is told of each synchronisation; nil for nobody.
	Observe func(dataplane.Report)
	Logger  *zap.Logger
}

// proxy is what serves one configuration.
type proxy struct {
	config config.Config
	opts   proxyOptions
	log    *zap.Logger

	// node is the name of the Node object that is looked for; empty for the only
	// one among manifests.
	node   string
	source *watch.Source
	events *events.Recorder

	// following is done when the source is not followed any more; nil before
	// begin. end stops that and waits for it.
	following context.Context
	end       func()

	// What open makes.
	conn, counters *kernel.Conn
	limits         *conntrack.Applier
	flows          flows
	health         *health.Server
	ports          *health.Ports
	metrics        *metrics.Metrics
	dataplane      *dataplane.Dataplane

	// served is closed when the rules are written for the first time.
	served chan struct{}
	// aside is since when services that an event told of have been refused.
	aside map[model.Name]time.Time
}

// newProxy checks what can be checked without touching anything. To wait for
// what the source has is what begin and prepare do, beside another proxy that
// runs; run does it where they have not. In the end either run or close is to be
// called.
func newProxy(c config.Config, o proxyOptions) (*proxy, error) {
	p := &proxy{config: c, opts: o, log: o.Logger, served: make(chan struct{}), aside: map[model.Name]time.Time{}}
	options, err := sourceOptions(c, p.log)
	if err != nil {
		return nil, err
	}
	p.node = options.NodeName
	if p.source, p.events, err = newSource(c, options); err != nil {
		return nil, err
	}
	return p, nil
}

// run serves until ctx is done. It is called once, and closes p.
func (p *proxy) run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, p.close()) }()
	if err := p.open(); err != nil {
		return err
	}
	servers, err := p.servers()
	if err != nil {
		return err
	}
	p.announce()
	others := []func(context.Context) error{
		unfailing(p.flows.cleaner.Run),
		unfailing(p.ports.Run),
		unfailing(p.events.Run),
		unfailing(func(ctx context.Context) { watchFull(ctx, p.events, p.log) }),
		p.onceServed(p.sweep),
		p.onceServed(p.shrink),
		unfailing(p.watchdog),
	}
	for _, s := range servers {
		s.Listen(ctx) // so that nobody is refused once the node is served
		others = append(others, s.run)
	}
	err = alongside(ctx, others, p.follow)
	if err == nil {
		p.log.Info("stopped; the rules stay, and services go on")
	}
	return err
}

// open makes all that needs the kernel.
func (p *proxy) open() (err error) {
	if p.conn, err = kernel.Dial(kernel.Options{}); err != nil {
		return err
	}
	if _, err := p.conn.Generation(); err != nil {
		return err // there is no right to do anything here, and never will be
	}
	if p.counters, err = kernel.Dial(kernel.Options{}); err != nil {
		return err
	}
	if p.limits, err = newLimits(p.config, p.log); err != nil {
		return err
	}
	if p.health, err = p.newHealth(); err != nil {
		return err
	}
	if p.ports, err = p.newPorts(); err != nil {
		return err
	}
	if p.metrics, err = p.newMetrics(); err != nil {
		return err
	}
	if p.flows, err = newFlows(p.config, p.metrics.ObserveFlows, p.log); err != nil {
		return err
	}
	p.dataplane, err = newDataplane(p.config, p.conn, p.limits, hooks{p.report, p.committed}, p.log)
	return err
}

// close ends what was begun and opened.
func (p *proxy) close() error {
	if p.end != nil {
		p.end()
	}
	var errs []error
	if p.conn != nil {
		errs = append(errs, p.conn.Close())
	}
	if p.counters != nil {
		errs = append(errs, p.counters.Close())
	}
	if p.flows.table != nil {
		errs = append(errs, p.flows.table.Close())
	}
	return errors.Join(errs...)
}

// announce says by what settings this run goes.
func (p *proxy) announce() {
	c := p.config
	p.log.Info("starts",
		zap.String("version", version()), zap.String("mode", string(c.Mode)),
		zap.String("manifests", c.Manifests), zap.String("kubeconfig", c.ClientConnection.Kubeconfig),
		zap.String("node", p.node), zap.String("detectLocalMode", string(c.DetectLocal.Mode)),
		zap.Stringers("clusterCIDRs", c.DetectLocal.ClusterCIDRs),
		zap.Duration("minSyncPeriod", c.MinSyncPeriod), zap.Duration("syncPeriod", c.SyncPeriod))
	if c.DetectLocal.Mode == config.DetectLocalByClusterCIDR && len(c.DetectLocal.ClusterCIDRs) == 0 {
		p.log.Warn("without a cluster CIDR pods cannot be told from others: traffic to cluster IPs is not masqueraded, " +
			"and an external traffic policy Local binds pods too (clusterCIDR, --cluster-cidr)")
	}
	if err := adjustOOMScore(oomScoreAdj, c.OOMScoreAdj); err != nil {
		p.log.Debug("the OOM score stays as it is", zap.Error(err))
	}
	p.events.Starting()
}

// report passes on what a synchronisation did.
func (p *proxy) report(r dataplane.Report) {
	p.metrics.Observe(r)
	p.tellAside(r.Aside)
	if r.Err == nil {
		p.health.Synced(r.Families...)
		p.serving(r)
	} else {
		p.health.Queued(model.Families[:]...) // what failed waits
	}
	if p.opts.Observe != nil {
		p.opts.Observe(r)
	}
}

// tellAside records an event for each service that the kernel refuses, once
// for each time that it begins to.
func (p *proxy) tellAside(aside []dataplane.Aside) {
	now := make(map[model.Name]time.Time, len(aside))
	for _, a := range aside {
		if now[a.Service] = a.Since; !p.aside[a.Service].Equal(a.Since) {
			p.events.ServiceAside(a.Service, a.Err)
		}
	}
	p.aside = now
	p.ports.SetAside(slices.Collect(maps.Keys(now))...)
}

// serving tells, once, that the node is served.
func (p *proxy) serving(r dataplane.Report) {
	select {
	case <-p.served:
		return
	default:
		close(p.served)
	}
	if err := p.opts.Ready.Ready(fmt.Sprintf("serving %d services", r.Services)); err != nil {
		p.log.Warn("readiness is not known to the service manager", zap.Error(err))
	}
}

// onceServed is for what goes on, whatever happens, from when the node is served.
func (p *proxy) onceServed(run func(context.Context)) func(context.Context) error {
	return unfailing(func(ctx context.Context) {
		select {
		case <-ctx.Done():
		case <-p.served:
			run(ctx)
		}
	})
}

// committed passes on what has been written.
func (p *proxy) committed(plans []plan.Plan, node model.Node) {
	p.flows.cleaner.Update(plans, node)
	p.ports.Update(plans, node)
}

// shrink gives back the memory that only the start needs, and takes less from then
// on if there is little to serve.
func (p *proxy) shrink(context.Context) {
	if err := memory.ReleaseStart(); err != nil {
		p.log.Debug("memory that the start took stays taken", zap.Error(err))
	}
	memory.KeepSmall()
}

// watchdog tells the service manager that all is well, as long as it is.
func (p *proxy) watchdog(ctx context.Context) {
	if err := p.opts.Ready.Watchdog(ctx, p.health.Healthy); err != nil {
		p.log.Warn("the service manager does not hear that all is well", zap.Error(err))
	}
}
