package main

import (
	"context"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/leftovers"
	"go.uber.org/zap"
)

// sweepEvery is how often leftovers of kube-proxy are looked for: it may have
// been running when this program started, and leaves its rules when it ends.
const sweepEvery = time.Minute

// sweep removes what kube-proxy left in its other modes, once the rules that
// take its place are written.
func (p *proxy) sweep(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-p.served:
	}
	again := time.NewTicker(sweepEvery)
	defer again.Stop()
	for before := 0; ; {
		before = p.sweepOnce(before)
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

// sweepOnce returns how many times in a row something was found.
func (p *proxy) sweepOnce(before int) int {
	found, err := leftovers.Remove(leftovers.Options{Kernel: p.conn})
	if err != nil {
		p.log.Warn("leftovers of kube-proxy could not be removed; trying again", zap.Duration("in", sweepEvery), zap.Error(err))
	}
	switch {
	case len(found) == 0:
		return 0
	case before == 0:
		p.log.Info("removed leftovers of kube-proxy", zap.String("found", leftovers.Describe(found)))
	case before == 1:
		p.log.Warn("kube-proxy seems to run beside this program and to write its rules again: stop one of them",
			zap.String("found", leftovers.Describe(found)))
	}
	return before + 1
}
