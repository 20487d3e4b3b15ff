package watch

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// ErrNoNode says that the Node object of this node does not exist, or is not
// complete. A source works without it, and knows nothing of this node but its
// name.
var ErrNoNode = errors.New("node is not known")

// Source follows what exists, once it runs.
type Source struct {
	facts   *facts
	report  *reporter
	timeout time.Duration
	run     func(context.Context) error
}

// Run follows the source until ctx is done, which is no error. It is called
// once.
func (s *Source) Run(ctx context.Context) error { return s.run(ctx) }

// Ready waits for the first full list of every kind, and then, for at most
// Options.NodeTimeout, for this node to be known. It returns nil, the error of
// ctx, or an error that is ErrNoNode: then all lists are there, and the caller
// decides whether to go on.
func (s *Source) Ready(ctx context.Context) error {
	select {
	case <-s.facts.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	timer := time.NewTimer(s.timeout)
	defer timer.Stop()
	for {
		changed, err := s.facts.nodeState()
		if err == nil {
			return nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Snapshot returns everything that exists now; its Changed names what differs
// from the Snapshot returned before. It returns false before the first full
// list of every kind.
func (s *Source) Snapshot() (model.Snapshot, bool) { return s.facts.snapshot() }

// Changed delivers one value, and no more until that is read, whenever a
// Snapshot may differ from the one returned before, also for the first.
func (s *Source) Changed() <-chan struct{} { return s.facts.changed }

// SetLocal makes addrs, sorted, the addresses of this node's interfaces, from
// now on. The source does not change addrs and neither may the caller.
func (s *Source) SetLocal(addrs []netip.Addr) { s.facts.setLocal(addrs) }

// NodeErr returns nil, or why this node is not known now: an error that is
// ErrNoNode. A Node that was deleted stays in the snapshots as it last was.
func (s *Source) NodeErr() error {
	_, err := s.facts.nodeState()
	return err
}

// Eligible reports whether load balancers may send new connections to this
// node, as far as its Node object says: it is known, is not being deleted, and
// has not the taint by which the cluster autoscaler announces that. It changes
// as the object does. A directory without a Node leaves nothing to say against
// it. It costs nothing, whatever else the source is doing.
func (s *Source) Eligible() bool { return s.facts.eligible.Load() }

// Problems returns all that is wrong with the objects there are, sorted.
func (s *Source) Problems() []Problem { return s.report.all() }
