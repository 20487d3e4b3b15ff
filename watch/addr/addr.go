package addr

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"go.uber.org/zap"
)

const (
	// attempts is how often an interrupted list is made at once.
	attempts = 5
	// pause is how long after that, or after a failure, the next try comes.
	pause = time.Second
)

// Options of Follow. The zero value is usable.
type Options struct {
	// OnChange is called with the first list, and with each one that differs
	// from the one before: first by Follow, then by one goroutine; nil for
	// none.
	OnChange func([]netip.Addr)
	// Logger receives the first failure in a row; nil for none.
	Logger *zap.Logger
}

// Follower knows the addresses of this host's interfaces.
type Follower struct {
	kernel  kernel
	options Options
	list    atomic.Pointer[[]netip.Addr]
	done    chan struct{}

	notices *notices // nil while there is no subscription
	failed  bool
}

// Follow lists the addresses in the network namespace of this process, and
// keeps the list current until ctx is done. It fails if the first list cannot
// be had.
func Follow(ctx context.Context, o Options) (*Follower, error) {
	return follow(ctx, o, host{})
}

func follow(ctx context.Context, o Options, k kernel) (*Follower, error) {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	f := &Follower{kernel: k, options: o, done: make(chan struct{})}
	err := f.refresh()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		f.unsubscribe()
		return nil, err
	}
	go f.run(ctx, err)
	return f, nil
}

// List returns the addresses now, sorted, each once, loopback and link-local
// ones included, without zones. The caller may not change them.
func (f *Follower) List() []netip.Addr {
	if list := f.list.Load(); list != nil {
		return *list
	}
	return nil
}

// Done is closed when the follower has stopped, after ctx is done.
func (f *Follower) Done() <-chan struct{} { return f.done }

// run refreshes the list at every notice, and again after err.
func (f *Follower) run(ctx context.Context, err error) {
	defer close(f.done)
	defer f.unsubscribe()
	for {
		var again <-chan time.Time
		if err != nil {
			again = time.After(pause)
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
		case _, ok := <-f.notices.changes():
			if !ok {
				f.unsubscribe() // the kernel dropped notices
			}
		}
		err = f.refresh()
		f.tell(err)
	}
}

// refresh subscribes if need be, then lists. Its error says that the list may
// be out of date.
func (f *Follower) refresh() error {
	if f.notices == nil {
		n, err := f.kernel.subscribe()
		if err != nil {
			return fmt.Errorf("subscribe to address changes: %w", err)
		}
		f.notices = n
	}
	addrs, err := f.relist()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return fmt.Errorf("list addresses: %w", err)
	}
	if err != nil {
		addrs = append(addrs, f.List()...)
	}
	f.set(addrs)
	return err
}

// relist lists until a list is complete, but not for ever.
func (f *Follower) relist() (addrs []netip.Addr, err error) {
	for range attempts {
		f.notices.drain()
		addrs, err = f.kernel.list()
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return addrs, err
}

func (f *Follower) set(addrs []netip.Addr) {
	slices.SortFunc(addrs, netip.Addr.Compare)
	addrs = slices.Compact(addrs)
	if known := f.list.Load(); known != nil && slices.Equal(addrs, *known) {
		return
	}
	f.list.Store(&addrs)
	if f.options.OnChange != nil {
		f.options.OnChange(addrs)
	}
}

// tell logs the first failure in a row.
func (f *Follower) tell(err error) {
	if err != nil && !f.failed {
		f.options.Logger.Warn("addresses of this host may be out of date", zap.Error(err))
	}
	f.failed = err != nil
}

func (f *Follower) unsubscribe() {
	if f.notices != nil {
		f.notices.close()
		f.notices = nil
	}
}
