package pace

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// record is a Runner of a function that takes a while and fails as told, and
// when its runs began, counted from its start.
type record struct {
	*Runner
	takes time.Duration

	mu    sync.Mutex
	begun []time.Duration
	fail  error
}

func start(t *testing.T, o Options, takes time.Duration) *record {
	t.Helper()
	r := &record{takes: takes}
	zero := time.Now()
	runner, err := New(o, func(context.Context) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.begun = append(r.begun, time.Since(zero))
		time.Sleep(r.takes)
		return r.fail
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Runner = runner
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); runner.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

// after lets time pass.
func (r *record) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// failing makes runs fail from now on; nil ends that.
func (r *record) failing(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = err
}

func (r *record) expect(t *testing.T, want ...time.Duration) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.begun, want) {
		t.Errorf("runs began at %v, want %v", r.begun, want)
	}
}

const (
	ms = time.Millisecond
	s  = time.Second
)

func TestNothingRunsUntilTriggered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{Min: s}, 0)
		r.after(time.Hour)
		r.expect(t)
		r.Trigger()
		r.expect(t, time.Hour)
	})
}

func TestTriggersCoalesceUntilMinHasPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{Min: s}, 0)
		r.Trigger()
		r.after(100 * ms)
		r.Trigger()
		r.after(100 * ms)
		r.Trigger()
		r.after(time.Minute)
		r.expect(t, 0, s)
	})
}

func TestMinCountsFromTheEndOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{Min: s}, 3*s)
		r.Trigger()
		r.after(ms)
		r.Trigger()
		r.after(time.Minute)
		r.expect(t, 0, 4*s)
	})
}

func TestATriggerDuringARunLeadsToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{}, s)
		r.Trigger()
		r.after(500 * ms)
		r.Trigger()
		r.Trigger()
		r.after(time.Minute)
		r.expect(t, 0, s)
	})
}

func TestBurstAllowsRunsAtOnceAndIsEarnedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{Min: s, Burst: 2}, 0)
		for range 3 {
			r.Trigger()
			r.after(ms)
		}
		r.after(10 * s)
		r.expect(t, 0, ms, s)
		for range 2 {
			r.Trigger()
			r.after(ms)
		}
		r.expect(t, 0, ms, s, 10*s+3*ms, 10*s+4*ms)
	})
}

func TestMaxBoundsTheTimeBetweenRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{Min: s, Max: 10 * s}, 0)
		r.after(5 * s)
		r.expect(t)
		r.after(5 * s)
		r.Trigger() // puts off the next one that comes by itself
		r.after(16 * s)
		r.expect(t, 10*s, 11*s, 21*s)
	})
}

func TestRetryBacksOffAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{Retry: s}, 0)
		r.failing(errors.New("refused"))
		r.Trigger()
		r.after(65 * s)
		r.expect(t, 0, s, 3*s, 7*s, 15*s, 31*s, 47*s, 63*s)
		r.failing(nil)
		r.after(time.Hour)
		r.expect(t, 0, s, 3*s, 7*s, 15*s, 31*s, 47*s, 63*s, 79*s)
	})
}

func TestRetryIsNeverLaterThanMax(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{Retry: s, Max: 3 * s}, 0)
		r.failing(errors.New("refused"))
		r.Trigger()
		r.after(10 * s)
		r.expect(t, 0, s, 3*s, 6*s, 9*s)
	})
}

func TestATriggerComesBeforeTheRetryAndMayEndIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{Retry: 10 * s}, 0)
		r.failing(errors.New("refused"))
		r.Trigger()
		r.after(s)
		r.failing(nil)
		r.Trigger()
		r.after(time.Minute)
		r.expect(t, 0, s)
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	for name, o := range map[string]Options{"idle": {}, "between runs": {Min: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				r, err := New(o, func(context.Context) error { runs++; return nil })
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				r.Trigger()
				go func() { synctest.Wait(); r.Trigger(); cancel() }()
				r.Run(ctx)
				if runs != 1 {
					t.Errorf("ran %d times, want once", runs)
				}
			})
		})
	}
}

func TestOptionsNameTheBadField(t *testing.T) {
	for field, o := range map[string]Options{
		"Min":   {Min: -1},
		"Burst": {Burst: -1},
		"Max":   {Min: 2, Max: 1},
		"Retry": {Retry: -1},
	} {
		_, err := New(o, nil)
		if err == nil || !strings.HasPrefix(err.Error(), "pace: "+field) {
			t.Errorf("%+v: error is %v, want one of %s", o, err, field)
		}
	}
}
