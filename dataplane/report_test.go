package dataplane_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"
)

// refusing is a kernel that refuses whatever belongs to a service.
func refusing(owner string) func([]rules.Op) error {
	return func(ops []rules.Op) error {
		i := slices.IndexFunc(ops, func(op rules.Op) bool { return op.Place.Owner == owner })
		if i < 0 {
			return nil
		}
		return &kernel.Refused{Objects: []kernel.Refusal{{Place: ops[i].Place, Verb: ops[i].Verb, Errno: unix.EINVAL}}}
	}
}

// kubeRules counts the rules in KUBE-* chains in the kernel.
func (r *rig) kubeRules() map[rules.Table]int {
	r.t.Helper()
	chains, err := r.kernel.List(iptables.Tables())
	if err != nil {
		r.t.Fatal(err)
	}
	count := map[rules.Table]int{}
	for _, c := range chains {
		if n := len(c.Rules); n > 0 && strings.HasPrefix(c.ID.Name, "KUBE-") {
			count[c.ID.Table] += n
		}
	}
	return count
}

func TestReportCountsTheRulesOfTheKernel(t *testing.T) {
	r := newRig(t, dataplane.Options{})
	s := everything(service(1, 3), service(2, 0))
	steps := []model.Snapshot{s}
	for _, svc := range []*model.Service{service(2, 2), service(1, 1)} {
		s = changed(s.Services, svc)
		steps = append(steps, s)
	}
	for i, s := range steps {
		r.set(s)
		want := r.kubeRules()
		if diff := cmp.Diff(want, r.last.Rules); diff != "" {
			t.Errorf("step %d: rules (-want +got):\n%s", i, diff)
		}
		if i == 0 && !maps.Equal(want, r.last.Written) {
			t.Errorf("the first synchronisation wrote %v, want %v", r.last.Written, want)
		}
	}
	if nat := (rules.Table{Family: model.IPv4, Name: "nat"}); r.last.Written[nat] == 0 || r.last.Written[nat] >= r.last.Rules[nat]/2 {
		t.Errorf("one service of two wrote %d rules of %d", r.last.Written[nat], r.last.Rules[nat])
	}
	r.set(changed(s.Services))
	if len(r.last.Written) > 0 && slices.Max(slices.Collect(maps.Values(r.last.Written))) > 0 {
		t.Errorf("nothing changed, and %v was written", r.last.Written)
	}
	if !slices.Equal(r.last.Families, model.Families[:]) {
		t.Errorf("families %v", r.last.Families)
	}
}

// local is service i with endpoints on another node, and policies Local.
func local(i int, internal, external bool) *model.Service {
	svc := service(i, 2)
	svc.InternalLocal, svc.ExternalLocal = internal, external
	for j := range svc.Endpoints[http] {
		svc.Endpoints[http][j].Node = "elsewhere"
	}
	return svc
}

func TestReportCountsServicesWithoutLocalEndpoints(t *testing.T) {
	r := newRig(t, dataplane.Options{})
	expect := func(what string, internal, external int) {
		t.Helper()
		want := map[model.Family]dataplane.NoLocal{model.IPv4: {Internal: internal, External: external}, model.IPv6: {}}
		if diff := cmp.Diff(want, r.last.NoLocal); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	s := everything(local(1, true, false), local(2, false, true), local(3, true, true), service(4, 1))
	r.set(s)
	expect("a start", 2, 2)
	s = changed(s.Services, service(3, 1), local(4, false, true))
	r.set(s)
	expect("one recovers and one loses", 1, 2)
	none := local(1, true, false)
	none.Endpoints = nil
	s = changed(s.Services, none)
	r.set(s)
	expect("no endpoint anywhere", 0, 2)
	gone := model.Snapshot{Services: s.Services.With(map[model.Name]*model.Service{none.Name: nil, local(2, false, false).Name: nil}),
		Changed: map[model.Name]struct{}{none.Name: {}, local(2, false, false).Name: {}}}
	r.set(gone)
	expect("two gone", 0, 1)
	gone.Changed = nil
	r.set(gone)
	expect("all compared", 0, 1)
}

func TestReportCountsFailures(t *testing.T) {
	r := newRig(t, dataplane.Options{})
	expect := func(what string, failures, partial int) {
		t.Helper()
		if r.last.Failures != failures || r.last.PartialFailures != partial {
			t.Errorf("%s: %d failures, of them %d partial; want %d and %d",
				what, r.last.Failures, r.last.PartialFailures, failures, partial)
		}
	}
	s := everything(service(1, 2))
	r.set(s)
	expect("none", 0, 0)

	fault := errors.New("no memory")
	r.kernel.fail = func([]rules.Op) error { return fault }
	s = changed(s.Services, service(2, 2))
	if err := r.Set(t.Context(), s); !errors.Is(err, fault) {
		t.Fatal(err)
	}
	expect("a change that fails", 1, 1)
	if err := r.Set(t.Context(), changed(s.Services)); !errors.Is(err, fault) {
		t.Fatal(err)
	}
	expect("the same, all compared", 1, 0)

	r.kernel.fail = refusing("default/svc-3")
	s = changed(s.Services, service(3, 2))
	r.set(s)
	expect("a service that is refused", 1, 0)
}

// at is a trigger of service i.
func at(i int, second int64) model.Trigger {
	return model.Trigger{Service: service(i, 0).Name, Family: model.IPv4, At: time.Unix(second, 0)}
}

func TestTriggersAreReportedOnceTheyAreTrue(t *testing.T) {
	r := newRig(t, dataplane.Options{})
	expect := func(what string, want ...model.Trigger) {
		t.Helper()
		if diff := cmp.Diff(want, r.last.Triggers, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	triggered := func(s model.Snapshot, triggers ...model.Trigger) model.Snapshot {
		s.Triggers = triggers
		return s
	}
	s := triggered(everything(service(1, 1)), at(1, 10))
	r.set(s)
	expect("a first change", at(1, 10))

	fault := errors.New("no memory")
	r.kernel.fail = func([]rules.Op) error { return fault }
	s = triggered(changed(s.Services, service(1, 2), service(2, 1)), at(1, 11), at(2, 12))
	if err := r.Set(t.Context(), s); !errors.Is(err, fault) {
		t.Fatal(err)
	}
	expect("a change that fails")
	gone := s.Services.With(map[model.Name]*model.Service{service(2, 0).Name: nil})
	r.kernel.fail = refusing("default/svc-3")
	s = triggered(changed(gone, service(3, 1)), at(3, 13))
	s.Changed[service(2, 0).Name] = struct{}{}
	r.set(s)
	expect("what failed before, without what is gone and what is refused", at(1, 11))
	r.set(changed(s.Services))
	expect("nothing new")
	r.kernel.fail = nil
	r.set(changed(s.Services, service(3, 2)))
	expect("what is not refused any more", at(3, 13))
}

func TestTriggersOfWhatFailsForLongAreBounded(t *testing.T) {
	r := newRig(t, dataplane.Options{})
	s := everything(service(1, 1))
	r.set(s)
	fault := errors.New("no memory")
	r.kernel.fail = func([]rules.Op) error { return fault }
	for second := range int64(30) {
		s = changed(s.Services, service(1, int(second%3)+2))
		for range 1000 {
			s.Triggers = append(s.Triggers, at(1, second))
		}
		if err := r.Set(t.Context(), s); !errors.Is(err, fault) {
			t.Fatal(err)
		}
	}
	r.kernel.fail = nil
	r.set(changed(s.Services))
	// Each time that there were 11,000, the newest 5,000 stayed, and 1,000 came.
	if n := len(r.last.Triggers); n != 6_000 || !r.last.Triggers[0].At.Equal(time.Unix(24, 0)) {
		t.Errorf("%d triggers are left, the first of %v", n, r.last.Triggers[0].At)
	}
}

func TestLogNamesAHandfulOfChangedServices(t *testing.T) {
	core, logged := observer.New(zap.InfoLevel)
	r := newRig(t, dataplane.Options{Logger: zap.New(core)})
	expect := func(what string, want any) {
		t.Helper()
		lines := logged.FilterMessage("synchronised").All()
		logged.TakeAll()
		if len(lines) != 1 {
			t.Fatalf("%s: %d lines", what, len(lines))
		}
		if diff := cmp.Diff(want, lines[0].ContextMap()["changed"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	s := everything(service(0, 1))
	r.set(s)
	expect("a start", nil)
	var names []any
	var svcs []*model.Service
	for i := range 5 {
		names = append(names, fmt.Sprintf("default/svc-%d", i))
		svcs = append(svcs, service(i, 2))
	}
	s = changed(s.Services, svcs...)
	r.set(s)
	expect("five", names)
	svcs = nil
	for i := range 6 {
		svcs = append(svcs, service(i, 3))
	}
	r.set(changed(s.Services, svcs...))
	expect("six", nil)
}

func TestReportTellsOfRulesThatOthersChanged(t *testing.T) {
	r := newRig(t, dataplane.Options{})
	s := everything(service(1, 2))
	r.set(s)
	if r.last.Overwritten != 0 {
		t.Errorf("overwritten %d times by nobody", r.last.Overwritten)
	}
	r.empty("KUBE-SERVICES")
	r.set(changed(s.Services))
	if r.last.Overwritten != 1 || !r.last.Full {
		t.Errorf("overwritten %d times, want once; full %v", r.last.Overwritten, r.last.Full)
	}
}
