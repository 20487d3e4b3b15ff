package dataplane

import (
	"slices"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// heldTriggers is how many triggers may be held of what could not be made true:
// a kernel may refuse everything for days. Of more, the newest keptTriggers are
// kept.
const heldTriggers, keptTriggers = 10_000, 5_000

// triggers are those of changes that the kernel does not agree with yet. They
// are looked at when something becomes of their service, and not before.
type triggers struct {
	of   map[model.Name][]model.Trigger
	held int
}

// await adds the triggers of s. Nobody waits for a service that is gone.
func (t *triggers) await(s model.Snapshot) {
	if t.held > heldTriggers {
		all := t.take(func(model.Name) bool { return true })
		t.add(all[len(all)-keptTriggers:])
	}
	for name := range s.Changed {
		if s.Services.Get(name) == nil {
			t.remove(name)
		}
	}
	t.add(s.Triggers)
}

func (t *triggers) add(more []model.Trigger) {
	for _, one := range more {
		t.of[one.Service] = append(t.of[one.Service], one)
	}
	t.held += len(more)
}

// take removes the triggers of the services that are agreed with now, and
// returns them, the oldest first.
func (t *triggers) take(agreed func(model.Name) bool) (done []model.Trigger) {
	for name := range t.of {
		if agreed(name) {
			done = append(done, t.remove(name)...)
		}
	}
	slices.SortFunc(done, func(a, b model.Trigger) int { return a.At.Compare(b.At) })
	return done
}

// remove removes the triggers of a service, and returns them.
func (t *triggers) remove(name model.Name) []model.Trigger {
	removed := t.of[name]
	delete(t.of, name)
	t.held -= len(removed)
	return removed
}
