package labtest

import (
	"net/netip"
	"testing"
	"time"

	"github.com/nlproxy/nlproxy/integration/lab"
)

// Flows are connections, and sockets of UDP, that stay open, each with who
// answered first.
type Flows []flow

type flow struct {
	conn    *lab.Conn
	network string
	first   lab.Outcome
}

// Open opens n flows, until t ends.
func Open(t testing.TB, from *lab.Place, network string, to netip.AddrPort, n int) (all Flows) {
	t.Helper()
	for range n {
		conn, outcome := from.Connect(network, to, lab.DialOptions{})
		if conn == nil {
			t.Fatalf("%s from %s to %s: %s", network, from, to, outcome)
		}
		t.Cleanup(func() { conn.Close() })
		all = append(all, flow{conn, network, outcome})
	}
	return all
}

// Ask fails t unless each flow still leads from where to where it did.
func (all Flows) Ask(t testing.TB) {
	t.Helper()
	for _, f := range all {
		got := f.conn.Ask(2 * time.Second)
		if got.Kind != lab.Answered || got.At != f.first.At || got.Source != f.first.Source {
			t.Errorf("%s flow that was %s: %s", f.network, f.first, got)
		}
	}
}
