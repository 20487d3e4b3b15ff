package main

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"go.uber.org/zap"
)

// A wait is for the generation that takes the place of the one that runs: for a
// file that describes another one, and then for that to know what exists. The
// newest content of the file counts.
type wait struct {
	supervisor
	// all outlives the generation that runs.
	all context.Context
	now *generation
	// over ends the wait.
	over func()
	log  *zap.Logger

	preparing sync.WaitGroup
	mu        sync.Mutex
	// next prepares or, once ready, is what is waited for.
	next  *generation
	ready bool
	// refused is what was last said to be wrong with the file.
	refused string
}

// look looks at the file. One that cannot be used changes nothing, and is logged
// once.
func (w *wait) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, notes, err := configured(w.flags)
	switch {
	case w.ready:
	case err != nil:
		w.drop()
		w.refuse(err)
	case w.next != nil && reflect.DeepEqual(c, w.next.config):
	case w.now.takesUp(c):
		w.drop()
		w.mended(notes)
	default:
		w.drop()
		w.try(c, notes)
	}
}

// try has a generation of c prepare.
func (w *wait) try(c config.Config, notes []string) {
	next, err := w.generation(c, notes)
	if err != nil {
		w.refuse(err)
		return
	}
	if err := next.proxy.begin(w.all); err != nil {
		w.next = next
		w.drop()
		w.refuse(err)
		return
	}
	w.next = next
	w.log.Info("the configuration has changed; taking it up as soon as all objects are known")
	w.preparing.Go(func() { w.prepare(next) })
}

// prepare waits until next knows what it needs.
func (w *wait) prepare(next *generation) {
	err := next.proxy.prepare()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.next != next: // dropped meanwhile
	case w.all.Err() != nil: // which may be all that is wrong
		w.drop()
	case err != nil:
		w.drop()
		w.refuse(err)
	default:
		w.ready = true
		w.over()
	}
}

// drop ends the generation that prepares.
func (w *wait) drop() {
	next := w.next
	if w.next = nil; next == nil {
		return
	}
	if err := next.discard(); err != nil {
		w.log.Warn("what was not taken up did not end well", zap.Error(err))
	}
}

// refuse logs why the file is not used, unless that was the last thing said of it.
func (w *wait) refuse(err error) {
	if err == nil || w.refused == err.Error() {
		return
	}
	w.refused = err.Error()
	w.now.refused.Store(true)
	w.log.Error("the configuration has changed and cannot be used; going on with the one before",
		zap.Strings("problems", strings.Split(w.refused, "\n")))
}

// mended notes that the file describes what runs, perhaps with other things to
// say of it.
func (w *wait) mended(notes []string) {
	if w.refused != "" {
		w.log.Info("the configuration can be used again; it is the one in force")
	}
	w.refused = ""
	w.now.refused.Store(false)
	if !slices.Equal(notes, w.now.notes) {
		for _, note := range notes {
			w.log.Warn(note)
		}
		w.now.notes = notes
	}
}

// end ends the wait and returns what it was for; nil if that is not ready.
func (w *wait) end() *generation {
	w.mu.Lock()
	if !w.ready {
		w.drop()
	}
	next := w.next
	w.mu.Unlock()
	w.preparing.Wait()
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

// discard ends a generation that was never run.
func (g *generation) discard() error { return errors.Join(g.proxy.close(), g.logs.Close()) }
