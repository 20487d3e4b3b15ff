package labtest

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/nlproxy/nlproxy/integration/lab"
)

// patience is for what happens soon, or when a client has come back to a server
// that was away.
const patience = 90 * time.Second

// attempts is how often Answers dials: of three endpoints one is missed once
// in 10¹⁰ times.
const attempts = 60

// Answers fails t unless each of these places answers at to, and no other.
func Answers(t testing.TB, from *lab.Place, network string, to netip.AddrPort, places ...string) {
	t.Helper()
	tally := from.Spread(network, to, attempts, lab.DialOptions{})
	slices.Sort(places)
	if by := slices.Sorted(maps.Keys(tally.By)); !slices.Equal(by, places) || tally.Answered() != attempts {
		t.Errorf("%s from %s to %s: %s; want answers of %v", network, from, to, tally, places)
	}
}

// impatience is how long Becomes waits for each answer. There may be none: a
// router says that an address is nowhere once in a second to each who asks
// (ip_error, net/ipv4/route.c, Linux 6.18).
const impatience = 250 * time.Millisecond

// pace is the time between two attempts: without it they take the machine from
// those whom they test.
const pace = 5 * time.Millisecond

// The ports from which Becomes dials are below those that the kernel gives to
// others by itself (net.ipv4.ip_local_port_range). An attempt that comes before
// the rules leaves an untranslated flow in connection tracking for two minutes,
// which a probe from the same port would meet in place of the rules.
const (
	firstAttempt = 10_000
	attemptPorts = 20_000
)

// Becomes dials again and again until the outcome is right, and returns it.
func Becomes(t testing.TB, from *lab.Place, network string, to netip.AddrPort, right func(lab.Outcome) bool) lab.Outcome {
	t.Helper()
	ticks := time.NewTicker(pace)
	defer ticks.Stop()
	port := rand.IntN(attemptPorts)
	for deadline := time.Now().Add(patience); ; <-ticks.C {
		port = (port + 1) % attemptPorts
		got := from.Dial(network, to, lab.DialOptions{Timeout: impatience, LocalPort: uint16(firstAttempt + port)})
		if right(got) {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s from %s to %s, after %s: %s", network, from, to, patience, got)
		}
	}
}

// By says whether one of these places has answered.
func By(places ...string) func(lab.Outcome) bool {
	return func(o lab.Outcome) bool { return o.Kind == lab.Answered && slices.Contains(places, o.By) }
}

// Ends says whether an attempt has ended so.
func Ends(kind lab.Kind) func(lab.Outcome) bool {
	return func(o lab.Outcome) bool { return o.Kind == kind }
}
