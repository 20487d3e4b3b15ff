package pace

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Options says how often a Runner may run and must run. The zero value never
// waits and runs only when triggered.
type Options struct {
	// Min is the time, from the end of a run, in which another one is earned: no
	// run begins sooner after the one before, unless Burst allows it. 0 for no
	// limit.
	Min time.Duration
	// Burst is how many runs may follow each other at once after a quiet time,
	// from 1; 0 means 1.
	Burst int
	// Max is the longest time between two runs; 0 for no periodic run. It is
	// not below Min.
	Max time.Duration
	// Retry is how long after a failed run the next one comes without being
	// triggered. It doubles with each failure in a row, up to 16 times Retry,
	// but never beyond Max. 0 for no retry.
	Retry time.Duration
}

// Validate names the first field that cannot be used.
func (o Options) Validate() error {
	switch {
	case o.Min < 0:
		return fmt.Errorf("pace: Min %v is negative", o.Min)
	case o.Burst < 0 || o.Min > 0 && int64(o.Burst) > int64(never/2/o.Min):
		return fmt.Errorf("pace: Burst %d is out of range", o.Burst)
	case o.Max < 0 || o.Max > 0 && o.Max < o.Min:
		return fmt.Errorf("pace: Max %v is below Min %v", o.Max, o.Min)
	case o.Retry < 0 || o.Retry > never>>backoffDoublings:
		return fmt.Errorf("pace: Retry %v is out of range", o.Retry)
	}
	return nil
}

// backoffDoublings is how often Retry doubles at most.
const backoffDoublings = 4

// never is longer than any program runs.
const never = time.Duration(math.MaxInt64)

// after returns when the next run is due without a trigger, counted from the
// end of the one before, after so many failures in a row.
func (o Options) after(failures int) time.Duration {
	due := never
	if o.Max > 0 {
		due = o.Max
	}
	if failures > 0 && o.Retry > 0 {
		due = min(due, o.Retry<<min(failures-1, backoffDoublings))
	}
	return due
}

// Runner runs one function, again and again.
type Runner struct {
	options Options
	run     func(context.Context) error
	trigger chan struct{}
}

// New returns a Runner of run. The error that run returns decides only when
// it is run again: to report it is up to run.
func New(o Options, run func(context.Context) error) (*Runner, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Runner{options: o, run: run, trigger: make(chan struct{}, 1)}, nil
}

// Trigger asks for a run, as soon as the limits allow it, that begins after
// this call. It never blocks.
func (r *Runner) Trigger() {
	select {
	case r.trigger <- struct{}{}:
	default:
	}
}

// Run runs the function as it is due until ctx is done. It is called once.
func (r *Runner) Run(ctx context.Context) {
	limit := bucket{min: r.options.Min, burst: max(r.options.Burst, 1), full: time.Now()}
	due := time.NewTimer(r.options.after(0))
	defer due.Stop()
	failures := 0
	for r.wait(ctx, due.C) && sleep(ctx, limit.delay(time.Now())) {
		r.drain()
		if err := r.run(ctx); err != nil {
			failures++
		} else {
			failures = 0
		}
		limit.spend(time.Now())
		due.Reset(r.options.after(failures))
	}
}

// wait waits for a trigger or for due; it returns false once ctx is done.
func (r *Runner) wait(ctx context.Context, due <-chan time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-due:
	case <-r.trigger:
	}
	return ctx.Err() == nil
}

// drain takes back the trigger that the run about to begin answers.
func (r *Runner) drain() {
	select {
	case <-r.trigger:
	default:
	}
}

// sleep waits for d, or returns false once ctx is done.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
