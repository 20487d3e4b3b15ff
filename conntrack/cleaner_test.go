package conntrack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
)

// fakeFlows is a table in memory. Each dump takes one of outcomes, if there are
// any left, and shows nothing if that is another error than ErrInterrupted.
type fakeFlows struct {
	mu       sync.Mutex // held for a whole dump, and the deletions in it
	flows    []*Flow
	outcomes []error
	refuse   error // what deletions fail with
	dumps    int
	during   func() // called in the middle of a dump
}

func (f *fakeFlows) Dump(_ context.Context, filter Filter, yield func(*Flow) bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dumps++
	var outcome error
	if len(f.outcomes) > 0 {
		outcome, f.outcomes = f.outcomes[0], f.outcomes[1:]
	}
	if outcome != nil && !errors.Is(outcome, ErrInterrupted) {
		return outcome
	}
	if f.during != nil {
		f.during()
	}
	for _, flow := range slices.Clone(f.flows) {
		if filter.matches(flow) && !yield(flow) {
			break
		}
	}
	return outcome
}

func (f *fakeFlows) Delete(flow *Flow) error {
	if f.refuse != nil {
		return f.refuse
	}
	f.flows = slices.DeleteFunc(f.flows, func(other *Flow) bool { return other == flow })
	return nil
}

// cleaning is a Cleaner that runs, in a bubble of synctest.
type cleaning struct {
	*Cleaner
	*fakeFlows
	state  *state
	passes []Pass
}

// clean runs test with a Cleaner that looks after flows.
func clean(t *testing.T, test func(t *testing.T, c *cleaning), flows ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cleaning{fakeFlows: &fakeFlows{}, state: newState(t, settings)}
		for _, text := range flows {
			c.flows = append(c.flows, parse(t, text))
		}
		var err error
		c.Cleaner, err = NewCleaner(CleanerOptions{Flows: c.fakeFlows, Observer: func(p Pass) {
			c.arrange(func() { c.passes = append(c.passes, p) })
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			c.Run(ctx)
			close(done)
		}()
		test(t, c)
		cancel()
		<-done
	})
}

// arrange changes what the Cleaner sees or has reported.
func (c *cleaning) arrange(change func()) {
	c.fakeFlows.mu.Lock()
	defer c.fakeFlows.mu.Unlock()
	change()
}

// last is the report of the last pass.
func (c *cleaning) last() (p Pass) {
	c.arrange(func() { p = c.passes[len(c.passes)-1] })
	return p
}

// wait lets time pass, and the Cleaner settle.
func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// commit tells the Cleaner of services, nil for gone, and lets it settle.
func (c *cleaning) commit(changes map[model.Name]*model.Service) {
	c.state.services = c.state.services.With(changes)
	snapshot := model.Snapshot{Node: c.state.node, Services: c.state.services, Changed: map[model.Name]struct{}{}}
	for n := range changes {
		snapshot.Changed[n] = struct{}{}
	}
	var plans []plan.Plan
	for _, p := range c.state.planners {
		plans = append(plans, p.Build(snapshot))
	}
	c.Update(plans, c.state.node)
	synctest.Wait()
}

func (c *cleaning) put(services ...*model.Service) {
	changes := map[model.Name]*model.Service{}
	for _, svc := range services {
		changes[svc.Name] = svc
	}
	c.commit(changes)
}

// want fails t unless there were so many dumps, and these flows are left, named
// by who answers them.
func (c *cleaning) want(t *testing.T, dumps int, left ...string) {
	t.Helper()
	c.fakeFlows.mu.Lock()
	defer c.fakeFlows.mu.Unlock()
	var answered []string
	for _, f := range c.flows {
		answered = append(answered, f.Reply.Source.Addr().String())
	}
	if c.dumps != dumps || !slices.Equal(answered, left) {
		t.Errorf("%d dumps, %v left; want %d, %v", c.dumps, answered, dumps, left)
	}
}

const (
	toFive = "10.244.1.2:4000 > 10.96.0.10:53 < 10.244.1.5:53"
	toSix  = "10.244.1.2:4001 > 10.96.0.10:53 < 10.244.1.6:53"
	direct = "10.244.1.2:4002 > 10.96.0.10:53 < 10.96.0.10:53"
	others = "10.244.1.2:4003 > 8.8.8.8:53 < 8.8.8.8:53"
)

func TestPassDeletesWhatIsStaleAndSaysWhy(t *testing.T) {
	clean(t, func(t *testing.T, c *cleaning) {
		c.put(service("dns", "10.244.1.5:53"))
		c.want(t, 1, "10.244.1.5", "8.8.8.8")
		want := map[Orphan]int{EndpointGone: 1, NotTranslated: 1}
		if p := c.last(); !maps.Equal(p.Deleted, want) || p.Flows != 4 || p.Err != nil {
			t.Errorf("pass %+v", p)
		}
	}, toFive, toSix, direct, others)
}

func TestNothingIsDoneWhereNoSetShrank(t *testing.T) {
	clean(t, func(t *testing.T, c *cleaning) {
		c.put(service("dns", "10.244.1.5:53"))
		c.put(service("dns", "10.244.1.5:53"))
		c.put(service("dns", "10.244.1.5:53", "10.244.1.6:53"))
		web := service("web")
		web.Ports[0].Protocol = model.TCP
		c.put(web)
		c.commit(nil)
		wait(time.Hour)
		c.want(t, 1)
	})
}

func TestInterruptedDumpIsRepeatedAndThenTriedLater(t *testing.T) {
	interrupted := fmt.Errorf("dump flows: %w", ErrInterrupted)
	clean(t, func(t *testing.T, c *cleaning) {
		c.arrange(func() { c.outcomes = []error{interrupted, interrupted} })
		c.put(service("dns", "10.244.1.5:53"))
		c.want(t, 3, "10.244.1.5")
		if p := c.last(); p.Err != nil || p.Interrupted != 2 || p.Deleted[EndpointGone] != 1 {
			t.Errorf("pass %+v", p)
		}
		c.arrange(func() {
			c.outcomes = []error{interrupted, interrupted, interrupted}
			c.flows = append(c.flows, parse(t, toSix))
		})
		c.put(service("dns", "10.244.1.6:53"))
		c.want(t, 6, "10.244.1.6") // what was seen is acted upon
		if p := c.last(); !errors.Is(p.Err, ErrInterrupted) {
			t.Errorf("pass %+v", p)
		}
		wait(firstRetry)
		c.want(t, 7, "10.244.1.6")
		wait(time.Hour)
		c.want(t, 7, "10.244.1.6")
	}, toFive, toSix)
}

func TestWorkSurvivesFailures(t *testing.T) {
	clean(t, func(t *testing.T, c *cleaning) {
		c.put(service("dns", "10.244.1.5:53"))
		broken := errors.New("no buffer space")
		c.arrange(func() { c.outcomes = []error{broken, broken, broken} })
		gone := service("dns")
		c.commit(map[model.Name]*model.Service{gone.Name: nil})
		c.want(t, 2, "10.244.1.5")
		for i, pause := range []time.Duration{firstRetry, 2 * firstRetry, 4 * firstRetry} {
			wait(pause - 1)
			c.want(t, 2+i, "10.244.1.5")
			wait(1)
		}
		c.want(t, 5)
		if p := c.last(); p.Deleted[ServiceGone] != 1 {
			t.Errorf("pass %+v", p)
		}
	}, toFive)
}

func TestRefusedDeletionsAreCountedAndTriedAgain(t *testing.T) {
	clean(t, func(t *testing.T, c *cleaning) {
		busy := errors.New("device or resource busy")
		c.arrange(func() { c.refuse = busy })
		c.put(service("dns", "10.244.1.7:53"))
		if p := c.last(); p.Failed != 2 || len(p.Deleted) != 0 || !errors.Is(p.Err, busy) || strings.Count(p.Err.Error(), "busy") != 1 {
			t.Errorf("pass %+v", p)
		}
		c.arrange(func() { c.refuse = nil })
		wait(firstRetry)
		c.want(t, 2)
	}, toFive, toSix)
}

// TestChangeDuringAPassLeadsToAnother removes a service while a pass that began
// before looks through the flows.
func TestChangeDuringAPassLeadsToAnother(t *testing.T) {
	clean(t, func(t *testing.T, c *cleaning) {
		again := func() {
			c.during = nil
			name := service("dns").Name
			p := plan.Plan{Family: model.IPv4, Services: map[model.Name]plan.Service{name: {Name: name}}}
			c.Update([]plan.Plan{p}, c.state.node)
			c.flows = append(c.flows, parse(t, toSix)) // begun behind the dump's back
		}
		c.arrange(func() { c.during = again })
		c.put(service("dns", "10.244.1.5:53"))
		wait(firstRetry)
		c.want(t, 2)
		if got := len(c.index.targets); got != 2 { // of IPv6, which still has the service
			t.Errorf("%d targets", got)
		}
	}, toFive)
}

func TestOptionsThatCannotBeUsedAreNamed(t *testing.T) {
	for want, o := range map[string]CleanerOptions{
		"Flows":     {},
		"Protocols": {Flows: &fakeFlows{}, Protocols: []model.Protocol{1}},
	} {
		if _, err := NewCleaner(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want one that names %s", err, want)
		}
	}
}
