package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/watch/addr"
	"github.com/nlproxy/nlproxy/watch/pace"
	"go.uber.org/zap"
)

// retryAfter is how soon a failed synchronisation is repeated, at first.
const retryAfter = time.Second

// burst is how many synchronisations may follow each other at once.
const burst = 2

// begin starts to follow the source and the addresses of this host, until end is
// called or ctx is done.
func (p *proxy) begin(ctx context.Context) error {
	following, stop := context.WithCancelCause(ctx)
	if _, err := addr.Follow(following, addr.Options{OnChange: p.source.SetLocal, Logger: p.log}); err != nil {
		stop(nil)
		return fmt.Errorf("addresses of this host: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stop(p.source.Run(following))
	}()
	p.following, p.end = following, func() { stop(nil); <-ended }
	return nil
}

// prepare waits, after begin, until there is all that the first synchronisation
// needs. It changes nothing.
func (p *proxy) prepare() error {
	if err := p.source.Ready(p.following); p.following.Err() != nil {
		return cause(p.following)
	} else if err != nil {
		return err
	}
	return p.checkNode()
}

// follow keeps the rules in step with the source and the addresses of this
// host, until ctx is done.
func (p *proxy) follow(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	runner, err := pace.New(pace.Options{Min: p.config.MinSyncPeriod, Burst: burst, Max: p.config.SyncPeriod, Retry: retryAfter},
		p.synchronise)
	if err != nil {
		return err
	}
	if err := p.prepared(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	stop := context.AfterFunc(p.following, func() { fail(context.Cause(p.following)) })
	defer stop()
	p.health.Synced(model.Families[:]...) // from now on
	var triggering sync.WaitGroup
	triggering.Go(func() { p.trigger(ctx, runner) })
	runner.Run(ctx)
	triggering.Wait()
	return cause(ctx)
}

// prepared begins and prepares what was not made to before run.
func (p *proxy) prepared(ctx context.Context) error {
	if p.following != nil {
		return nil
	}
	if err := p.begin(ctx); err != nil {
		return err
	}
	return p.prepare()
}

// checkNode logs what in the configuration does not fit this node, once that is
// known. The error is for what nothing can be served with.
func (p *proxy) checkNode() error {
	warnings, err := nodeProblems(p.config, p.source.Node())
	for _, w := range warnings {
		p.log.Warn(w)
	}
	return err
}

// cause is why ctx is done, if not because it was meant to be.
func cause(ctx context.Context) error {
	if err := context.Cause(ctx); err != context.Canceled {
		return err
	}
	return nil
}

// synchronise makes the kernel agree with what exists now. It counts as waiting
// from its begin on: what changed during the one before was taken for done with
// that.
func (p *proxy) synchronise(ctx context.Context) error {
	snapshot, ok := p.source.Snapshot()
	if !ok {
		return nil
	}
	p.health.Queued(model.Families[:]...)
	snapshot.Node = bound(snapshot.Node, p.config.BindAddress)
	err := p.dataplane.Set(ctx, snapshot)
	if err != nil && ctx.Err() == nil {
		p.log.Error("rules are not up to date", zap.Error(err))
	}
	return err
}

// bound puts the address that the user gave for this node in place of the one
// of its family that the Node object has, and makes its family the primary one.
func bound(n model.Node, a netip.Addr) model.Node {
	if !a.IsValid() || a.IsUnspecified() {
		return n
	}
	same := func(o netip.Addr) bool { return model.FamilyOf(o) == model.FamilyOf(a) }
	n.Addresses = append([]netip.Addr{a}, slices.DeleteFunc(slices.Clone(n.Addresses), same)...)
	return n
}

// trigger asks for a synchronisation whenever there is something new.
func (p *proxy) trigger(ctx context.Context, runner *pace.Runner) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.source.Changed():
			p.metrics.Queued()
			p.health.Queued(model.Families[:]...)
			runner.Trigger()
		}
	}
}
