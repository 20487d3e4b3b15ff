package main

import (
	"context"
	"errors"
	"math"
	"sync"

	"github.com/nlproxy/nlproxy/cmd/internal/health"
	"github.com/nlproxy/nlproxy/cmd/internal/metrics"
	"github.com/nlproxy/nlproxy/cmd/internal/serve"
	"github.com/nlproxy/nlproxy/conntrack"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

// lateAfter is how many sync periods a change may wait before this node counts
// as unhealthy, as with kube-proxy 1.37 (newProxyServer in cmd/kube-proxy/app).
const lateAfter = 2

func (p *proxy) newHealth() (*health.Server, error) {
	return health.New(health.Options{
		Late:     lateAfter * min(p.config.SyncPeriod, math.MaxInt64/lateAfter),
		Eligible: p.source.Eligible,
		// The metrics are made later, but before anybody can ask.
		Answered: func(path string, code int) { p.metrics.ObserveHealth(path, code) },
	})
}

func (p *proxy) newPorts() (*health.Ports, error) {
	return health.NewPorts(health.PortsOptions{
		Healthy: p.health.Healthy,
		Failed: func(service model.Name, port uint16, err error) {
			p.events.ServiceHealthPortFailed(service, port, err)
		},
		Logger: p.log,
	})
}

func (p *proxy) newMetrics() (*metrics.Metrics, error) {
	return metrics.New(metrics.Options{
		Stats:                conntrack.ReadStats,
		Unwritable:           p.limits.Unwritable,
		Changes:              p.source.Changes,
		Counter:              p.counters.Counter,
		HealthPortsFailing:   p.ports.Failing,
		ConfigurationRefused: p.opts.Refused,
		Clients:              p.opts.Clients,
		Mode:                 string(p.config.Mode),
		Configuration:        func() any { return p.config.Published() },
		Profiling:            p.config.EnableProfiling,
		Statusz:              p.config.ComponentStatusz,
		Flagz:                p.config.ComponentFlagz,
		Flags:                p.config.Flags(),
		SetVerbosity:         p.opts.SetVerbosity,
		Logger:               p.log,
	})
}

// server answers HTTP, and an event tells why if it ends this process.
type server struct {
	*serve.Server
	tell func(error)
}

func (s server) run(ctx context.Context) error {
	err := s.Run(ctx)
	if err != nil {
		s.tell(err)
	}
	return err
}

// servers returns what answers HTTP. Where an address that cannot be had is to
// end this process, its server fails.
func (p *proxy) servers() (all []server, err error) {
	for _, s := range []struct {
		options serve.Options
		tell    func(error)
	}{
		{serve.Options{Name: "healthzBindAddress (--healthz-bind-address)", Address: p.config.HealthzBindAddress, Handler: p.health.Handler()}, p.events.HealthServerFailed},
		{serve.Options{Name: "metricsBindAddress (--metrics-bind-address)", Address: p.config.MetricsBindAddress, Handler: p.metrics.Handler()}, p.events.MetricsServerFailed},
	} {
		s.options.HardFail, s.options.Logger = p.config.BindAddressHardFail, p.log
		made, err := serve.New(s.options)
		if err != nil {
			return nil, err
		}
		all = append(all, server{made, s.tell})
	}
	return all, nil
}

// unfailing is for what goes on, whatever happens.
func unfailing(run func(context.Context)) func(context.Context) error {
	return func(ctx context.Context) error { run(ctx); return nil }
}

// alongside runs main, and the others until it is over. The first of them that
// fails ends all.
func alongside(ctx context.Context, others []func(context.Context) error, main func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	for _, other := range others {
		running.Go(func() {
			if err := other(ctx); err != nil {
				stop(err)
			}
		})
	}
	err := main(ctx)
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	stop(nil)
	running.Wait()
	return err
}
