package main

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nlproxy/nlproxy/integration/lab"
)

// How many connections a step makes: enough to see shares where several
// endpoints answer, and affinity where only one of several should.
const (
	spreadConnections   = 1000
	togetherConnections = 100
	singleConnections   = 20
	// batch is after how many a step ends early if something went wrong, which
	// may have taken seconds for each.
	batch = 50
	// enough is how many do where a step takes longer than tooLong, as on an
	// emulated processor.
	enough  = 100
	tooLong = time.Second
)

const (
	// dropWait is how long nothing has to come back for a packet to count as
	// dropped; an answer takes less than a hundredth of it.
	dropWait = 250 * time.Millisecond
	// atOnce is the most that a refusal may take. A first packet that is lost
	// would be sent again after a second.
	atOnce = 500 * time.Millisecond
	// sigmas is by how many standard deviations a share may be off: chance
	// alone does that once in two million times.
	sigmas = 5
)

// step is one kind of traffic, and what has to come of it.
type step struct {
	// title is what the step is about; steps in a row may share it.
	title string
	// from is a place of the lab, network tcp, udp or sctp.
	from, network string
	to            netip.AddrPort
	want          want
	// why is the reason for the wanted outcome, as a user should know it.
	why string
}

// want is the outcome that a step should have.
type want struct {
	kind lab.Kind
	// by are the servers that answer, in equal shares.
	by []string
	// seen are the client's addresses as the servers see them: all of these
	// and no other. Empty for any.
	seen []string
	// together says that only one of by answers, whichever it is.
	together bool
}

// result is what came of a step.
type result struct {
	tally lab.Tally
	took  time.Duration
	// skipped says why nothing was tried.
	skipped string
}

// connections is how many connections show whether w holds.
func (w want) connections() int {
	switch {
	case w.kind != lab.Answered:
		return 1
	case w.together:
		return togetherConnections
	case w.spreads():
		return spreadConnections
	}
	return singleConnections
}

// spreads reports whether several servers are to answer.
func (w want) spreads() bool { return len(w.by) > 1 && !w.together }

// carryOut sends the step's traffic.
func (s step) carryOut(places map[string]*lab.Place) result {
	if s.network == "sctp" && !lab.HasSCTP() {
		return result{skipped: "this kernel has no SCTP"}
	}
	var options lab.DialOptions
	if s.want.kind == lab.TimedOut {
		options.Timeout = dropWait
	}
	total := lab.Tally{By: map[string]int{}, Sources: map[netip.Addr]int{}}
	start := time.Now()
	// The first connection goes alone: of several at the same time, none would
	// know yet with which endpoint their client stays.
	n := 1
	for left := s.want.connections(); left > 0 && len(total.Others) == 0; n = min(left, batch) {
		if total.Answered() >= enough && time.Since(start) > tooLong {
			break
		}
		merge(&total, places[s.from].Spread(s.network, s.to, n, options))
		left -= n
	}
	return result{tally: total, took: time.Since(start)}
}

// merge adds t to into.
func merge(into *lab.Tally, t lab.Tally) {
	for name, n := range t.By {
		into.By[name] += n
	}
	for source, n := range t.Sources {
		into.Sources[source] += n
	}
	into.Others = append(into.Others, t.Others...)
}

// judge returns what is wrong with r, nothing if it is as wanted.
func (w want) judge(r result) []string {
	switch {
	case r.skipped != "":
		return nil
	case w.kind == lab.Answered:
		return slices.Concat(failures(r.tally), w.strangers(r.tally), w.shares(r.tally), w.sources(r.tally))
	case len(r.tally.Others) == 0:
		return []string{fmt.Sprintf("was answered (%s), should be %s", r.tally, w.kind)}
	case r.tally.Others[0].Kind != w.kind:
		return []string{fmt.Sprintf("was %s, should be %s", r.tally.Others[0], w.kind)}
	case w.kind == lab.Refused && r.took > atOnce:
		return []string{fmt.Sprintf("was refused only after %s", short(r.took))}
	}
	return nil
}

func failures(t lab.Tally) []string {
	if len(t.Others) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d connections were not answered, the first: %s",
		len(t.Others), len(t.Others)+t.Answered(), t.Others[0])}
}

// strangers finds servers that should not have answered.
func (w want) strangers(t lab.Tally) (wrong []string) {
	for _, name := range slices.Sorted(maps.Keys(t.By)) {
		if !slices.Contains(w.by, name) {
			wrong = append(wrong, fmt.Sprintf("%s answered, which should not", name))
		}
	}
	return wrong
}

// shares holds each server's share against the expected one.
func (w want) shares(t lab.Tally) (wrong []string) {
	if w.together {
		if len(t.By) > 1 {
			wrong = append(wrong, fmt.Sprintf("several answered (%s), should be one", t))
		}
		return wrong
	}
	n, p := float64(t.Answered()), 1/float64(len(w.by))
	tolerance := sigmas * math.Sqrt(n*p*(1-p))
	for _, name := range w.by {
		if math.Abs(float64(t.By[name])-n*p) > tolerance {
			wrong = append(wrong, fmt.Sprintf("%s answered %d of %.0f, should be %.0f ± %.0f", name, t.By[name], n, n*p, tolerance))
		}
	}
	return wrong
}

// sources holds the addresses that servers saw against the expected ones.
func (w want) sources(t lab.Tally) []string {
	if len(w.seen) == 0 {
		return nil
	}
	if got := sourcesOf(t); !slices.Equal(got, slices.Sorted(slices.Values(w.seen))) {
		return []string{fmt.Sprintf("servers saw %s, should be %s", strings.Join(got, ", "), strings.Join(w.seen, ", "))}
	}
	return nil
}

// sourcesOf lists the addresses that servers saw, sorted as text.
func sourcesOf(t lab.Tally) (list []string) {
	for a := range t.Sources {
		list = append(list, a.String())
	}
	slices.Sort(list)
	return list
}
