package addr

import (
	"context"
	"errors"
	"net/netip"

	"go.uber.org/zap"
)

// Options of Follow. The zero value is usable.
type Options struct {
	// OnChange is called with the first list, and with each one that differs
	// from the one before, from one goroutine at a time; nil for none.
	OnChange func([]netip.Addr)
	// Logger receives failures to list; nil for none.
	Logger *zap.Logger
}

// Follower knows the addresses of this host's interfaces.
type Follower struct{}

// Follow lists the addresses, and keeps the list current until ctx is done. It
// fails if the first list cannot be had.
func Follow(ctx context.Context, o Options) (*Follower, error) { return nil, errors.ErrUnsupported }

// List returns the addresses now, sorted, loopback and link-local ones
// included, without zones.
func (f *Follower) List() []netip.Addr { return nil }

// Done is closed when the follower has stopped, after ctx is done.
func (f *Follower) Done() <-chan struct{} { return nil }
