package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

const (
	// quiet is how long a file has to be left alone before it is read: editors
	// write in several steps, and half a file may be a valid one.
	quiet = 100 * time.Millisecond
	// anyway is how often a file is read although nothing seems to have changed:
	// no notice tells of another file behind a link.
	anyway = time.Minute
)

// followFile calls look at first, at each SIGHUP, and whenever the content of a
// file may have changed, once it has been left alone for a moment, until ctx is
// done. Its folder is what is watched, because a mounted ConfigMap changes by a
// link beside the file, and many editors put another file in its place.
func followFile(ctx context.Context, path string, look func(), log *zap.Logger) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, unix.SIGHUP)
	defer signal.Stop(hangup)
	notices, err := watchFolder(filepath.Dir(path))
	if err != nil {
		log.Warn("changes of the configuration file are noticed late", zap.String("file", path),
			zap.Duration("within", anyway), zap.Error(err))
	}
	defer notices.close()
	settled := time.NewTimer(0) // for what changed before the folder was watched
	defer settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			settled.Reset(0)
		case <-notices.events:
			settled.Reset(quiet)
		case <-notices.errors: // some were lost
			settled.Reset(quiet)
		case <-settled.C:
			look()
			settled.Reset(anyway)
		}
	}
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
