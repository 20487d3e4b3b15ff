package conntrack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"go.uber.org/zap"
)

// Flows is where flows are; Table is one, and says what the methods do and
// which errors they return.
type Flows interface {
	Dump(ctx context.Context, filter Filter, yield func(*Flow) bool) error
	Delete(*Flow) error
}

// CleanerOptions configures a Cleaner.
type CleanerOptions struct {
	// Flows are those to look through. Required.
	Flows Flows
	// Protocols are those to look after besides UDP: SCTP and TCP are possible.
	Protocols []model.Protocol
	// Logger is told of passes that deleted something or failed; nil for none.
	Logger *zap.Logger
	// Observer, if set, is called with each Pass.
	Observer func(Pass)
}

// Validate names the first field that cannot be used.
func (o CleanerOptions) Validate() error {
	if o.Flows == nil {
		return errors.New("conntrack: Flows is missing")
	}
	for _, p := range o.Protocols {
		if !slices.Contains([]model.Protocol{model.TCP, model.UDP, model.SCTP}, p) {
			return fmt.Errorf("conntrack: Protocols: %s is none of tcp, udp, sctp", p)
		}
	}
	return nil
}

// Pass says what one look through the flows did.
type Pass struct {
	// Flows is how many were looked at.
	Flows int
	// Deleted is how many were deleted, by why they were stale, and ByFamily by
	// their family.
	Deleted  map[Orphan]int
	ByFamily map[model.Family]int
	// Failed is how many deletions the kernel refused.
	Failed int
	// Interrupted is how many dumps were interrupted.
	Interrupted int
	// Duration of the whole.
	Duration time.Duration
	// Err is why stale flows may be left, which another pass will look for.
	Err error
}

const (
	// dumpAttempts is how often flows are dumped in one pass if each dump is
	// interrupted.
	dumpAttempts = 3
	// A pass that failed is repeated after firstRetry, and after twice the time
	// at each further failure, up to maxRetry.
	firstRetry = time.Second
	maxRetry   = time.Minute
)

// Cleaner deletes flows that the plans have orphaned.
type Cleaner struct {
	opts   CleanerOptions
	filter Filter
	// wake has room for one: there is something to do.
	wake chan struct{}

	mu    sync.Mutex
	index *index
}

// NewCleaner returns a Cleaner that knows no service yet.
func NewCleaner(o CleanerOptions) (*Cleaner, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	protocols := append([]model.Protocol{model.UDP}, o.Protocols...)
	slices.Sort(protocols)
	protocols = slices.Compact(protocols)
	return &Cleaner{
		opts:   o,
		filter: Filter{Protocols: protocols},
		wake:   make(chan struct{}, 1),
		index:  newIndex(protocols),
	}, nil
}

// Update takes over what has been decided and written into the kernel: it is
// made to be dataplane's Options.Committed. It returns at once, and has Run look
// through the flows if some may have become stale by it.
func (c *Cleaner) Update(plans []plan.Plan, node model.Node) {
	c.mu.Lock()
	changed := c.index.update(plans, node)
	c.mu.Unlock()
	if !changed {
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run deletes stale flows whenever there may be some, until ctx is done. It is
// called once. After a pass it rests for half the time which that took, and takes
// what has changed meanwhile together.
func (c *Cleaner) Run(ctx context.Context) {
	retry := time.NewTimer(maxRetry)
	retry.Stop() // until a pass fails
	defer retry.Stop()
	for backoff := firstRetry; ; {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-retry.C:
		}
		pass := c.pass(ctx)
		if ctx.Err() != nil {
			return
		}
		c.report(pass)
		if pass.Err == nil {
			backoff = firstRetry
			retry.Stop()
		} else {
			retry.Reset(backoff)
			backoff = min(2*backoff, maxRetry)
		}
		rest(ctx, pass.Duration/2)
	}
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// pass looks through all flows. What is there to be done by then is done only
// when it has succeeded.
func (c *Cleaner) pass(ctx context.Context) Pass {
	start := time.Now()
	c.mu.Lock()
	generation := c.index.generation
	c.mu.Unlock()
	p := Pass{Deleted: map[Orphan]int{}, ByFamily: map[model.Family]int{}}
	p.Err = c.sweep(ctx, &p)
	if p.Err == nil {
		c.mu.Lock()
		c.index.forget(generation)
		c.mu.Unlock()
	}
	p.Duration = time.Since(start)
	return p
}

// sweep deletes what is stale as it sees it. An interrupted dump lacks flows,
// and shows none that are not there: it is good for deletions, and repeated.
func (c *Cleaner) sweep(ctx context.Context, p *Pass) error {
	var dumped, deleted error
	for range dumpAttempts {
		p.Flows, p.Failed, deleted = 0, 0, nil
		dumped = c.opts.Flows.Dump(ctx, c.filter, func(f *Flow) bool {
			if err := c.visit(f, p); err != nil {
				p.Failed++
				if deleted == nil {
					deleted = err
				}
			}
			return ctx.Err() == nil
		})
		if !errors.Is(dumped, ErrInterrupted) {
			break
		}
		p.Interrupted++
	}
	return errors.Join(dumped, deleted)
}

// visit deletes f if it is stale.
func (c *Cleaner) visit(f *Flow, p *Pass) error {
	p.Flows++
	c.mu.Lock()
	orphan, stale := c.index.stale(f)
	c.mu.Unlock()
	if !stale {
		return nil
	}
	if err := c.opts.Flows.Delete(f); err != nil {
		return err
	}
	p.Deleted[orphan]++
	p.ByFamily[f.Family]++
	return nil
}

func (c *Cleaner) report(p Pass) {
	fields := []zap.Field{zap.Int("flows", p.Flows), zap.Duration("elapsed", p.Duration)}
	for _, o := range Orphans {
		if n := p.Deleted[o]; n > 0 {
			fields = append(fields, zap.Int(o.String(), n))
		}
	}
	switch {
	case p.Err != nil:
		c.opts.Logger.Warn("stale flows may be left", append(fields, zap.Int("failed", p.Failed), zap.Error(p.Err))...)
	case len(p.Deleted) > 0:
		c.opts.Logger.Info("deleted stale flows", fields...)
	}
	if c.opts.Observer != nil {
		c.opts.Observer(p)
	}
}
