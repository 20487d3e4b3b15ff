package main

import (
	"context"
	"errors"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/nlproxy/nlproxy/cmd/internal/logs"
	"github.com/nlproxy/nlproxy/cmd/internal/metrics"
	"github.com/nlproxy/nlproxy/cmd/internal/ready"
	"go.uber.org/zap"
)

// A supervisor runs one daemon after another, each by what the configuration
// file says then. From one to the next the rules stay, so that no connection
// notices, and what the new one writes is the difference.
type supervisor struct {
	flags   *config.Flags
	ready   *ready.Notifier
	clients *metrics.Clients
	// hangup asks for a look at the file.
	hangup <-chan os.Signal
}

// A generation is a daemon with its configuration and its log.
type generation struct {
	config config.Config
	logs   *logs.Logs
	proxy  *proxy
	// refused is what was last wrong with the file.
	refused string
}

// run serves until ctx is done or a daemon fails.
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
	p, err := newProxy(c, proxyOptions{Ready: s.ready, Clients: s.clients, SetVerbosity: l.SetVerbosity, Logger: l.Logger()})
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &generation{config: c, logs: l, proxy: p}, nil
}

// serve runs a daemon until it ends, or until there is another one to run, which
// it returns. That the service manager cannot be told, or that the end of a log
// cannot be written, does not keep the next one from running.
func (s supervisor) serve(ctx context.Context, now *generation) (next *generation, err error) {
	if err := now.logs.CaptureKlog(); err != nil {
		return nil, errors.Join(err, now.logs.Close())
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

// runs runs a daemon as serve does.
func (s supervisor) runs(ctx context.Context, now *generation) (next *generation, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var following sync.WaitGroup
	if now.config.File != "" {
		following.Go(func() {
			next = s.await(ctx, now)
			stop()
		})
	}
	err = now.proxy.run(ctx)
	stop()
	following.Wait()
	return next, err
}

// await returns the next generation, or nil when ctx is done.
func (s supervisor) await(ctx context.Context, now *generation) (next *generation) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	followFile(ctx, now.config.File, s.hangup, func() {
		if next = s.changed(now); next != nil {
			stop()
		}
	}, now.logs.Logger())
	return next
}

// changed looks at the file and returns what it describes, or nil if that is
// what runs. A file that cannot be used changes nothing, and is logged once.
func (s supervisor) changed(now *generation) *generation {
	log := now.logs.Logger().With(zap.String("file", now.config.File))
	c, notes, err := configured(s.flags)
	if err != nil {
		now.refuse(log, err)
		return nil
	}
	now.refused = ""
	if now.takesUp(c) {
		return nil
	}
	next, err := s.generation(c, notes)
	if err != nil {
		now.refuse(log, err)
		return nil
	}
	log.Info("the configuration has changed; starting anew with it")
	return next
}

// takesUp reports whether now is what c describes, with the verbosity of c, which
// can be changed while it runs.
func (g *generation) takesUp(c config.Config) bool {
	if !reflect.DeepEqual(g.config.WithVerbosity(c.Logging.Verbosity), c) {
		return false
	}
	if c.Logging.Verbosity != g.config.Logging.Verbosity {
		if err := g.logs.SetVerbosity(strconv.Itoa(c.Logging.Verbosity)); err != nil {
			return false
		}
		g.logs.Logger().Info("the verbosity has changed", zap.Int("v", c.Logging.Verbosity))
		g.config = c
	}
	return true
}

// refuse logs why the file is not used, unless that was the last thing said of it.
func (g *generation) refuse(log *zap.Logger, err error) {
	if g.refused == err.Error() {
		return
	}
	g.refused = err.Error()
	log.Error("the configuration has changed and cannot be used; going on with the one before",
		zap.Strings("problems", strings.Split(g.refused, "\n")))
}
