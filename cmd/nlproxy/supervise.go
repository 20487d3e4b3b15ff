package main

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/nlproxy/nlproxy/cmd/internal/logs"
	"github.com/nlproxy/nlproxy/cmd/internal/metrics"
	"github.com/nlproxy/nlproxy/cmd/internal/ready"
	"go.uber.org/zap"
)

// A supervisor runs one proxy after another, each by what the configuration
// file says then. The next one waits beside the one that runs until it knows all
// that it needs. From one to the next the rules stay, so that no connection
// notices, and what the new one writes is the difference.
type supervisor struct {
	flags   *config.Flags
	ready   *ready.Notifier
	clients *metrics.Clients
	klog    *logs.Klog
	// hangup asks for a look at the file.
	hangup <-chan os.Signal
}

// A generation is a proxy with its configuration and its log.
type generation struct {
	config config.Config
	logs   *logs.Logs
	proxy  *proxy
	// notes are what there is to say of the configuration.
	notes []string
	// refused says that the file has become one that cannot be used.
	refused *atomic.Bool
}

// run serves until ctx is done or a proxy fails.
func (s supervisor) run(ctx context.Context, first config.Config, notes []string) error {
	now, err := s.generation(first, notes)
	for now != nil && err == nil {
		now, err = s.serve(ctx, now)
	}
	return err
}

// generation makes what c describes. Nothing is touched before it runs.
func (s supervisor) generation(c config.Config, notes []string) (*generation, error) {
	l, err := logs.New(logs.Options{Logging: c.Logging})
	if err != nil {
		return nil, err
	}
	for _, note := range notes {
		l.Logger().Warn(note)
	}
	refused := new(atomic.Bool)
	p, err := newProxy(c, proxyOptions{
		Ready: s.ready, Clients: s.clients,
		SetVerbosity: l.SetVerbosity, Refused: refused.Load, Logger: l.Logger(),
	})
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &generation{config: c, logs: l, proxy: p, notes: notes, refused: refused}, nil
}

// serve runs a proxy until it ends, or until there is another one to run, which
// it returns. That the service manager cannot be told, or that the end of a log
// cannot be written, does not keep the next one from running.
func (s supervisor) serve(ctx context.Context, now *generation) (next *generation, err error) {
	if err := s.klog.To(now.logs); err != nil {
		return nil, errors.Join(err, now.discard())
	}
	next, err = s.runs(ctx, now)
	told := s.ready.Stopping
	if next != nil {
		told = s.ready.Reloading
	}
	if err := told(); err != nil {
		now.logs.Logger().Warn("the service manager does not know what happens", zap.Error(err))
	}
	lost := now.logs.Close()
	if next == nil {
		return nil, errors.Join(err, lost)
	}
	if lost != nil {
		next.logs.Logger().Warn("the end of the log before is lost", zap.Error(lost))
	}
	return next, nil // what ended the last one does not matter any more
}

// runs runs a proxy as serve does.
func (s supervisor) runs(all context.Context, now *generation) (next *generation, err error) {
	ctx, stop := context.WithCancel(all)
	defer stop()
	var following sync.WaitGroup
	if now.config.File != "" {
		following.Go(func() {
			next = s.await(all, ctx, now)
			stop()
		})
	}
	err = now.proxy.run(ctx)
	stop()
	following.Wait()
	return next, err
}

// await returns the next generation once it can take over, or nil when ctx is
// done. What the next one begins goes on until all is done.
func (s supervisor) await(all, ctx context.Context, now *generation) *generation {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w := &wait{supervisor: s, all: all, now: now, over: stop, log: now.logs.Logger().With(zap.String("file", now.config.File))}
	followFile(ctx, now.config.File, s.hangup, w.look, now.logs.Logger())
	return w.end()
}
