package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"
)

const (
	// quiet is how long a file has to be left alone before it is read: editors
	// write in several steps, and half a file may be a valid one.
	quiet = 100 * time.Millisecond
	// patience is how long a folder in which something always changes keeps a
	// file from being read.
	patience = 2 * time.Second
	// anyway is how often a file is read although nothing seems to have changed:
	// no notice tells of another file behind a link.
	anyway = time.Minute
)

// followFile calls look at first, at each hangup, and whenever the content of a
// file may have changed, once its folder has been left alone for a moment, until
// ctx is done. The folder is what is watched, because a mounted ConfigMap changes
// by a link beside the file, and many editors put another file in its place.
func followFile(ctx context.Context, path string, hangup <-chan os.Signal, look func(), log *zap.Logger) {
	notices, err := watchFolder(filepath.Dir(path))
	if err != nil {
		log.Warn("changes of the configuration file are noticed late", zap.String("file", path),
			zap.Duration("within", anyway), zap.Error(err))
	}
	defer notices.close()
	settled := newSettling() // for what changed before the folder was watched
	defer settled.timer.Stop()
	for ctx.Err() == nil { // which look may have seen to
		select {
		case <-ctx.Done():
		case <-hangup:
			settled.after(0)
		case <-notices.events:
			settled.disturb()
		case <-notices.errors: // some were lost
			settled.disturb()
		case <-settled.timer.C:
			look()
			settled.after(anyway)
		}
	}
}

// settling waits until nothing has changed for a moment.
type settling struct {
	timer *time.Timer
	// since is when the first change came that was not looked at yet; zero for
	// none.
	since time.Time
}

// newSettling returns one whose wait is over.
func newSettling() *settling { return &settling{timer: time.NewTimer(0)} }

// after begins anew, and waits for that time.
func (s *settling) after(wait time.Duration) {
	s.since = time.Time{}
	s.timer.Reset(wait)
}

// disturb notes a change.
func (s *settling) disturb() {
	if s.since.IsZero() {
		s.since = time.Now()
	}
	s.timer.Reset(min(quiet, max(0, patience-time.Since(s.since))))
}

// notices are of the changes in a folder; the zero value never has any.
type notices struct {
	events <-chan fsnotify.Event
	errors <-chan error
	close  func() error
}

func watchFolder(dir string) (notices, error) {
	none := notices{close: func() error { return nil }}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return none, err
	}
	if err := w.Add(dir); err != nil {
		w.Close()
		return none, err
	}
	return notices{w.Events, w.Errors, w.Close}, nil
}
