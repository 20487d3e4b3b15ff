package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// The kinds of object that a source reads, as a Problem spells them.
const (
	kindService = "service"
	kindSlice   = "endpointslice"
	kindNode    = "node"
)

// What a directory's problems are remembered by.
const (
	kindFile      = "file"
	kindDirectory = "directory"
)

// Problem is one value that could not be used and was left out.
type Problem struct {
	// Object is its kind and name: "service default/web", "node n1".
	Object string
	// Field is the path to the value, such as "spec.externalIPs[0]"; empty if
	// the whole object is meant.
	Field string
	// Message says what is wrong with it.
	Message string

	// File is the manifest that it is in, and Line the line at which its
	// document begins or, for bad syntax, the line itself; 0 if it cannot be
	// read at all. They are zero for an object from an API server.
	File string
	Line int
}

// String returns all of it in one line: "web.yaml:3: service default/web:
// spec.externalIPs[0]: ...".
func (p Problem) String() string {
	var parts []string
	if p.File != "" && p.Line > 0 {
		parts = append(parts, fmt.Sprintf("%s:%d", p.File, p.Line))
	} else if p.File != "" {
		parts = append(parts, p.File)
	}
	for _, s := range []string{p.Object, p.Field, p.Message} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

// object identifies an object of any kind.
type object struct {
	kind string
	name model.Name
}

// String returns "service default/web", or "node n1" for a kind without
// namespaces.
func (o object) String() string {
	if o.name.Namespace == "" {
		return o.kind + " " + o.name.Name
	}
	return o.kind + " " + o.name.String()
}

func (o object) compare(p object) int {
	return cmp.Or(strings.Compare(o.kind, p.kind), o.name.Compare(p.name))
}

// findings gathers the problems of one object while it is read.
type findings struct {
	object object
	list   []Problem
}

func (f *findings) add(field, format string, args ...any) {
	f.list = append(f.list, Problem{
		Object:  f.object.String(),
		Field:   field,
		Message: fmt.Sprintf(format, args...),
	})
}

// reporter tells of problems once: what it was told last of an object, or of a
// file, is remembered until that is gone.
type reporter struct {
	log      *zap.Logger
	observer func(Problem)

	mu      sync.Mutex
	current map[object][]Problem
}

func newReporter(o Options) *reporter {
	return &reporter{log: o.Logger, observer: o.Observer, current: map[object][]Problem{}}
}

// set makes problems all that is wrong with o now.
func (r *reporter) set(o object, problems []Problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.current[o]
	for _, p := range known {
		if !slices.Contains(problems, p) {
			r.log.Info("no longer the case: " + p.String())
		}
	}
	for _, p := range problems {
		if !slices.Contains(known, p) {
			r.tell(p)
		}
	}
	if len(problems) > 0 {
		r.current[o] = problems
	} else {
		delete(r.current, o)
	}
}

func (r *reporter) tell(p Problem) {
	r.log.Warn(p.String())
	if r.observer != nil {
		r.observer(p)
	}
}

// retain forgets the objects of a kind for which keep is false.
func (r *reporter) retain(kind string, keep func(model.Name) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for o := range r.current {
		if o.kind == kind && !keep(o.name) {
			delete(r.current, o)
		}
	}
}

// all returns what is wrong now, sorted.
func (r *reporter) all() []Problem {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Problem
	for _, problems := range r.current {
		all = append(all, problems...)
	}
	slices.SortFunc(all, func(a, b Problem) int { return strings.Compare(a.String(), b.String()) })
	return all
}
