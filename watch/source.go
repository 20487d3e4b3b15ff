package watch

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"go.uber.org/zap"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// ErrNoNode says that the Node object of this node does not exist, or is not
// complete. A source works without it, with what it knew of this node before:
// at first nothing but its name.
var ErrNoNode = errors.New("node is not known")

// Source follows what exists, once it runs.
type Source struct {
	facts   *facts
	report  *reporter
	options Options // with defaults
	run     func(context.Context) error
}

// Run follows the source until ctx is done, which is no error. It is called
// once.
func (s *Source) Run(ctx context.Context) error { return s.run(ctx) }

// Ready waits for the first full list of every kind, then, for at most
// Options.NodeTimeout, for this node to exist and have an address, and then, if
// one is needed, for at most Options.PodCIDRTimeout for a pod CIDR. It returns
// nil, the error of ctx, or an error that is ErrNoNode: then all lists are
// there, and the caller decides whether to go on.
//
// A node that is still without an address is no error, as it is none to
// kube-proxy: in some clouds it is given one only by a controller that needs
// services first.
func (s *Source) Ready(ctx context.Context) error {
	if err := s.listed(ctx); err != nil {
		return err
	}
	err := s.await(ctx, s.options.NodeTimeout, lacksNode|lacksAddress)
	if err == nil && s.options.NeedPodCIDRs {
		err = s.await(ctx, s.options.PodCIDRTimeout, lacksNode|lacksPodCIDR)
	}
	if err != nil {
		return err
	}
	err = s.NodeErr()
	if err != nil && lackOf(err) == lacksAddress {
		s.options.Logger.Warn("goes on without this node's addresses, until they are known", zap.Error(err))
		return nil
	}
	return err
}

// silentFor is how long the first lists may take before that is logged.
const silentFor = 15 * time.Second

// listed waits for the first full list of every kind. A server that takes
// requests and does not answer them never makes one fail, so that what is waited
// for is logged here.
func (s *Source) listed(ctx context.Context) error {
	begin := time.Now()
	long := time.NewTimer(silentFor)
	defer long.Stop()
	for {
		select {
		case <-s.facts.ready:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-long.C:
			s.options.Logger.Warn("waits for the first list of each kind; nothing is programmed before",
				zap.Strings("missing", s.facts.missing()), zap.Duration("for", time.Since(begin)))
			long.Reset(complainEvery)
		}
	}
}

// await waits until nothing of unwanted is lacking, for at most a time.
func (s *Source) await(ctx context.Context, atMost time.Duration, unwanted lack) error {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	for told := false; ; {
		changed, err := s.facts.nodeState()
		if lackOf(err)&unwanted == 0 {
			return nil
		}
		if !told {
			s.options.Logger.Info("waits for this node", zap.Duration("atMost", atMost), zap.Error(err))
			told = true
		}
		select {
		case <-changed:
		case <-timer.C:
			return nil
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

// Node returns what is known of this node now. What counts as changed in the
// next Snapshot stays as it is.
func (s *Source) Node() model.Node {
	s.facts.mu.Lock()
	defer s.facts.mu.Unlock()
	return s.facts.node
}

// NodeErr returns nil, or why this node is not known now: an error that is
// ErrNoNode. A Node that was deleted stays in the snapshots as it last was, and
// so do the addresses of one that has none any more, and the pod CIDRs if they
// are needed.
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
