package watch

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// settle is how long a directory has to be quiet before it is read: editors
// and copies write in several steps.
const settle = 100 * time.Millisecond

// absent is how long after a folder has gone it is looked for again.
const absent = time.Second

// Directory returns a source that follows the manifests in a directory: every
// file in it, not below it, that is named *.yaml, *.yml or *.json, may hold
// any number of documents and lists, and is followed through links. It reads
// Services, EndpointSlices and Nodes and leaves out all else. Objects get the
// API server's defaults, and those that it would refuse are refused.
//
// A document that is refused stays as it was when it was good. Of two files
// that define one object, the first in the order of names counts.
func Directory(dir string, o Options) (*Source, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	if _, err := manifestNames(dir); err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	s := &Source{facts: newFacts(o, kindDirectory), report: newReporter(o), options: o}
	d, err := newDirectory(dir, o, s.facts, s.report)
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	s.run = func(ctx context.Context) error { return d.follow(ctx, o.Rescan, o.Logger) }
	return s, nil
}

// follow reads the directory when it has changed, and now and then anyway.
func (d *directory) follow(ctx context.Context, rescan time.Duration, log *zap.Logger) error {
	n := newNotices(d.path, log)
	defer n.close()
	again := time.NewTicker(rescan)
	defer again.Stop()
	quiet := time.NewTimer(0)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-n.events:
			n.note(e)
			quiet.Reset(settle)
		case err := <-n.errors:
			log.Warn("notices of changed manifests were lost", zap.String("directory", d.path), zap.Error(err))
			quiet.Reset(settle)
		case <-again.C:
			n.renew()
			d.read()
		case <-quiet.C:
			if n.gone {
				n.renew()
			}
			d.read()
			if n.gone {
				quiet.Reset(absent)
			}
		}
	}
}

// read scans the directory, or reports that it cannot be read.
func (d *directory) read() {
	f := findings{object: object{kindDirectory, model.Name{Name: d.path}}}
	if err := d.scan(); err != nil {
		f.add("", "%v; what was read last stays", err)
	} else {
		d.facts.arrived(kindDirectory)
	}
	d.report.set(f.object, f.list)
}

// notices are the kernel's notices of changes in a directory. Without any,
// which the limits of inotify may cause, there is the scan that comes anyway.
type notices struct {
	path    string
	log     *zap.Logger
	watcher *fsnotify.Watcher
	seen    fs.FileInfo // the folder that is watched
	gone    bool        // it is not at the path any more, and none has been seen there
	events  <-chan fsnotify.Event
	errors  <-chan error
}

func newNotices(path string, log *zap.Logger) *notices {
	n := &notices{path: path, log: log}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		n.warn(err)
		return n
	}
	n.watcher, n.events, n.errors = watcher, watcher.Events, watcher.Errors
	n.renew()
	return n
}

// renew watches what is now at the path, if that is another folder than before.
func (n *notices) renew() {
	if n.watcher == nil {
		return
	}
	now, err := os.Stat(n.path)
	if err != nil || n.seen != nil && os.SameFile(n.seen, now) {
		return
	}
	n.gone = false
	if n.seen != nil {
		// The error says that it is not watched any more, as it should be.
		_ = n.watcher.Remove(n.path)
	}
	if err := n.watcher.Add(n.path); err != nil {
		n.warn(err)
		return
	}
	n.seen = now
}

// note takes notice of the end of a folder: it is not watched any more once it
// has another name or none, even if it comes back.
func (n *notices) note(e fsnotify.Event) {
	if e.Name == filepath.Clean(n.path) && (e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)) {
		n.seen, n.gone = nil, true
	}
}

func (n *notices) warn(err error) {
	n.log.Warn("changed manifests are noticed only by reading them now and then",
		zap.String("directory", n.path), zap.Error(err))
}

func (n *notices) close() {
	if n.watcher != nil {
		_ = n.watcher.Close()
	}
}
