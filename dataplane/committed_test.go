package dataplane_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"golang.org/x/sys/unix"
)

// told collects the IPv4 services that Committed is called with.
type told struct{ calls [][]string }

func (c *told) committed(plans []plan.Plan, _ model.Node) {
	var names []string
	for n := range maps.Keys(plans[0].Services) {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	c.calls = append(c.calls, names)
}

func (c *told) want(t *testing.T, calls ...[]string) {
	t.Helper()
	if !slices.EqualFunc(c.calls, calls, slices.Equal) {
		t.Errorf("told of %v, want %v", c.calls, calls)
	}
	c.calls = nil
}

func TestCommittedTellsWhatIsNew(t *testing.T) {
	var c told
	r := newRig(t, dataplane.Options{Committed: c.committed})
	s := everything(service(1, 2), service(2, 2))
	r.set(s)
	c.want(t, []string{"svc-1", "svc-2"})
	r.set(changed(s.Services, service(2, 1)))
	c.want(t, []string{"svc-2"})
}

func TestCommittedTellsNothingOfWhatFailed(t *testing.T) {
	var c told
	r := newRig(t, dataplane.Options{Committed: c.committed})
	s := everything(service(1, 2), service(2, 2))
	r.set(s)
	c.calls = nil
	r.kernel.fail = func([]rules.Op) error { return errors.New("no memory") }
	next := changed(s.Services, service(2, 1))
	if err := r.Set(t.Context(), next); err == nil {
		t.Error("no error")
	}
	c.want(t)
	r.kernel.fail = nil
	r.set(changed(next.Services))
	if len(c.calls) != 1 || !slices.Contains(c.calls[0], "svc-2") {
		t.Errorf("told of %v once it was written", c.calls)
	}
}

func TestCommittedLeavesOutWhatWasSetAside(t *testing.T) {
	var c told
	r := newRig(t, dataplane.Options{Committed: c.committed})
	s := everything(service(1, 2))
	r.set(s)
	c.calls = nil
	r.kernel.fail = func(ops []rules.Op) error {
		r.kernel.fail = nil
		i := slices.IndexFunc(ops, func(op rules.Op) bool { return op.Place.Owner == "default/svc-2" })
		return &kernel.Refused{Objects: []kernel.Refusal{{Place: ops[i].Place, Verb: ops[i].Verb, Errno: unix.EINVAL}}}
	}
	r.set(changed(s.Services, service(2, 1), service(3, 1)))
	if len(c.calls) != 1 || slices.Contains(c.calls[0], "svc-2") || !slices.Contains(c.calls[0], "svc-3") {
		t.Errorf("told of %v", c.calls)
	}
}

// TestCommittedTellsOfWhatIsGoneBesideWhatWasSetAside: with a service set aside
// not all are told of, and one that is gone has to be named.
func TestCommittedTellsOfWhatIsGoneBesideWhatWasSetAside(t *testing.T) {
	var c told
	r := newRig(t, dataplane.Options{Committed: c.committed})
	s := everything(service(1, 2))
	r.set(s)
	r.kernel.fail = func(ops []rules.Op) error {
		i := slices.IndexFunc(ops, func(op rules.Op) bool { return op.Place.Owner == "default/svc-2" })
		if i < 0 {
			return nil
		}
		return &kernel.Refused{Objects: []kernel.Refusal{{Place: ops[i].Place, Verb: ops[i].Verb, Errno: unix.EINVAL}}}
	}
	s = changed(s.Services, service(2, 1))
	r.set(s)
	c.calls = nil
	refuse := r.kernel.fail
	r.kernel.fail = func([]rules.Op) error { return errors.New("no memory") }
	gone := service(1, 2).Name
	s.Services = s.Services.With(map[model.Name]*model.Service{gone: nil})
	s.Changed = map[model.Name]struct{}{gone: {}}
	if err := r.Set(t.Context(), s); err == nil {
		t.Error("no error")
	}
	r.kernel.fail = refuse
	r.set(changed(s.Services))
	c.want(t, []string{"svc-1"})
}
