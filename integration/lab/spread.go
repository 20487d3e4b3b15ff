package lab

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// spreaders is how many connections of a Spread are under way at a time.
const spreaders = 16

// A Tally counts outcomes.
type Tally struct {
	// By is how many answers each place gave.
	By map[string]int
	// Sources is how many of the attempts each server saw come from which
	// address.
	Sources map[netip.Addr]int
	// Others are the outcomes that were no answers.
	Others []Outcome
}

// Answered is how many answers there were.
func (t Tally) Answered() int {
	sum := 0
	for _, n := range t.By {
		sum += n
	}
	return sum
}

func (t Tally) String() string {
	var parts []string
	for name, n := range t.By {
		parts = append(parts, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(parts)
	if len(t.Others) > 0 {
		parts = append(parts, fmt.Sprintf("%d others, the first: %s", len(t.Others), t.Others[0]))
	}
	return strings.Join(parts, ", ")
}

func (t *Tally) add(o Outcome) {
	if o.Kind != Answered {
		t.Others = append(t.Others, o)
		return
	}
	t.By[o.By]++
	t.Sources[o.Source.Addr()]++
}

// Spread dials n times, some at a time, each from a port of its own, and
// counts who answers. A LocalPort in o makes no sense and is ignored.
func (p *Place) Spread(network string, to netip.AddrPort, n int, o DialOptions) Tally {
	o.LocalPort = 0
	tally := Tally{By: make(map[string]int), Sources: make(map[netip.Addr]int)}
	todo := make(chan struct{})
	outcomes := make(chan Outcome)
	var workers sync.WaitGroup
	for range spreaders {
		workers.Go(func() {
			for range todo {
				outcomes <- p.Dial(network, to, o)
			}
		})
	}
	go func() {
		for range n {
			todo <- struct{}{}
		}
		close(todo)
		workers.Wait()
		close(outcomes)
	}()
	for outcome := range outcomes {
		tally.add(outcome)
	}
	return tally
}
