package conntrack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
)

const (
	// fullAbove and calmBelow are the shares of the table between which a
	// report is not repeated.
	fullAbove = 0.90
	calmBelow = 0.85

	defaultFullInterval = 10 * time.Second
)

// WatchFullOptions configures WatchFull.
type WatchFullOptions struct {
	// Read is ReadStats, or stands in for it. Required.
	Read func() (Stats, error)
	// Interval between two reads. 0 means 10 seconds.
	Interval time.Duration
	// OnFull is called, by the goroutine of WatchFull, with each report; nil
	// for none.
	OnFull func(Stats)
	// Logger is warned with each report, and of the first failed read in a row;
	// nil for none.
	Logger *zap.Logger
}

// Validate names the first field that cannot be used.
func (o WatchFullOptions) Validate() error {
	switch {
	case o.Read == nil:
		return errors.New("conntrack: Read is missing")
	case o.Interval < 0:
		return fmt.Errorf("conntrack: Interval %v is negative", o.Interval)
	}
	return nil
}

// WatchFull reads the state of the table at once and then at every interval
// until ctx is done. It reports when the table is more than 90 % full: once, and
// again only after it was less than 85 % full. Its only error is that of
// Validate.
func WatchFull(ctx context.Context, o WatchFullOptions) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if o.Interval == 0 {
		o.Interval = defaultFullInterval
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	w := fullWatch{options: o}
	ticks := time.NewTicker(o.Interval)
	defer ticks.Stop()
	for {
		w.look()
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// fullWatch remembers what has been reported.
type fullWatch struct {
	options      WatchFullOptions
	full, failed bool
}

func (w *fullWatch) look() {
	s, err := w.options.Read()
	if err != nil && !w.failed {
		w.options.Logger.Warn("the state of connection tracking cannot be read", zap.Error(err))
	}
	w.failed = err != nil
	if err != nil {
		return
	}
	switch fill := s.Fill(); {
	case fill > fullAbove && !w.full:
		w.full = true
		w.report(s)
	case fill < calmBelow:
		w.full = false
	}
}

func (w *fullWatch) report(s Stats) {
	w.options.Logger.Warn("the table of connection tracking is nearly full; new connections fail once it is",
		zap.Uint32("entries", s.Entries), zap.Uint32("limit", s.Limit),
		zap.Uint64("dropped", s.Drop), zap.Uint64("early dropped", s.EarlyDrop))
	if w.options.OnFull != nil {
		w.options.OnFull(s)
	}
}
