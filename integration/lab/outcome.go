package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// A Kind is one of the ways in which an attempt to reach a server ends.
type Kind int

// The zero Kind is that of an attempt that was none.
const (
	// Failed: the attempt could not be made; Outcome.Err says why.
	Failed Kind = iota
	// Answered: a server answered.
	Answered
	// Refused: a TCP reset or an ICMP "port unreachable" came back.
	Refused
	// TimedOut: nothing came back in time, or the kernel that sent said that
	// it had dropped the packet (EPERM).
	TimedOut
	// Unreachable: there is no route, here or at a router on the way.
	Unreachable
	// Broken: a connection that had been made ended before the answer.
	Broken
)

func (k Kind) String() string {
	names := [...]string{"failed", "answered", "refused", "timed out", "unreachable", "broken"}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return names[k]
}

// An Outcome is what came of an attempt to reach a server.
type Outcome struct {
	Kind Kind
	// By is the name of the place that answered, and At the address and port
	// at which it was reached there.
	By string
	At netip.AddrPort
	// Source is where the attempt came from, as the server saw it.
	Source netip.AddrPort
	// Err is the error behind every Kind but Answered.
	Err error
}

func (o Outcome) String() string {
	switch o.Kind {
	case Answered:
		return fmt.Sprintf("answered by %s at %s, which saw %s", o.By, o.At, o.Source)
	case Failed, Broken:
		return fmt.Sprintf("%s: %v", o.Kind, o.Err)
	default:
		return o.Kind.String()
	}
}

// kinds is which errors of sockets mean which outcome; the first that fits.
var kinds = []struct {
	err  error
	kind Kind
}{
	{unix.ECONNREFUSED, Refused},
	{os.ErrDeadlineExceeded, TimedOut},
	{context.DeadlineExceeded, TimedOut},
	{unix.ETIMEDOUT, TimedOut},
	{unix.EINPROGRESS, TimedOut},
	{unix.EPERM, TimedOut},
	{unix.ENETUNREACH, Unreachable},
	{unix.EHOSTUNREACH, Unreachable},
	{unix.ECONNRESET, Broken},
	{unix.EPIPE, Broken},
	{io.EOF, Broken},
	{io.ErrUnexpectedEOF, Broken},
}

// outcomeOf is the outcome that err stands for.
func outcomeOf(err error) Outcome {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return Outcome{Kind: k.kind, Err: err}
		}
	}
	return Outcome{Kind: Failed, Err: err}
}
