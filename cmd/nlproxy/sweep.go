package main

import (
	"context"
	"slices"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/leftovers"
	"go.uber.org/zap"
)

// sweepEvery is how often leftovers of kube-proxy are looked for: it may have
// been running when this program started, and leaves its rules when it ends.
const sweepEvery = time.Minute

// sweep removes what kube-proxy left in its other modes. It is for when the rules
// that take its place are written.
func (p *proxy) sweep(ctx context.Context) {
	again := time.NewTicker(sweepEvery)
	defer again.Stop()
	for s := (sweeper{log: p.log}); ; {
		found, err := leftovers.Remove(ctx, leftovers.Options{Kernel: p.conn})
		if ctx.Err() != nil { // what is left, the next to start will find
			found, err = slices.DeleteFunc(found, stays), nil
		}
		s.tell(found, err)
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

// sweeper tells of what each of its sweeps found, without repeating itself.
type sweeper struct {
	log *zap.Logger
	// inRow is how many sweeps in a row have removed something.
	inRow int
	// failed and kept are what was last said of what could not be removed.
	failed, kept string
}

func (s *sweeper) tell(found []leftovers.Found, err error) {
	kept := slices.DeleteFunc(slices.Clone(found), func(f leftovers.Found) bool { return !stays(f) })
	s.removed(slices.DeleteFunc(found, stays))
	if text := leftovers.Describe(kept); s.kept != text && text != "" {
		s.log.Warn("leftovers of kube-proxy stay, since others use them", zap.String("found", text))
	}
	s.kept = leftovers.Describe(kept)
	if err != nil && err.Error() != s.failed {
		s.log.Warn("leftovers of kube-proxy could not be removed; trying again", zap.Duration("every", sweepEvery), zap.Error(err))
	}
	if s.failed = ""; err != nil {
		s.failed = err.Error()
	}
}

func stays(f leftovers.Found) bool { return f.Kept != nil }

func (s *sweeper) removed(found []leftovers.Found) {
	if len(found) == 0 {
		s.inRow = 0
		return
	}
	s.inRow++
	switch s.inRow {
	case 1:
		s.log.Info("removed leftovers of kube-proxy", zap.String("found", leftovers.Describe(found)))
	case 2:
		s.log.Warn("kube-proxy seems to run beside this program and to write its rules again: stop one of them",
			zap.String("found", leftovers.Describe(found)))
	}
}
