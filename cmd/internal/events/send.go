package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/flowcontrol"
)

// The times and numbers of client-go v0.37.2: tools/events/event_broadcaster.go
// and, for how many, tools/record/events_cache.go.
const (
	// quiet is how long an event must not happen for the next to be a new one.
	quiet = 6 * time.Minute
	// tries is how often an event is sent to an API server that does not
	// answer, retry how long after each other, and a quarter more at most.
	tries = 12
	retry = 10 * time.Second
	// burst new events of a kind of object may come at once, and rate in a second.
	burst = 25
	rate  = 1. / 300
)

const (
	// attemptTimeout is how long an attempt to send an event may take.
	attemptTimeout = 10 * time.Second
	// grace is how long events that are left may take to be sent at the end:
	// among them is the one that says why.
	grace = 2 * time.Second
)

// A key is what events have in common that are the same one, happening again.
// As in client-go, the note is not in it.
type key struct {
	kind, reason, action string
	regarding            corev1.ObjectReference
}

func keyOf(e *eventsv1.Event) key { return key{e.Type, e.Reason, e.Action, e.Regarding} }

// A series is an event, with its Series once it has happened again.
type series struct {
	event *eventsv1.Event
	// written says that the API server has it as it is.
	written bool
}

// last is when s happened last.
func (s *series) last() time.Time {
	if s.event.Series == nil {
		return s.event.EventTime.Time
	}
	return s.event.Series.LastObservedTime.Time
}

// again counts e as one more of s.
func (s *series) again(e *eventsv1.Event) {
	if s.event.Series == nil {
		s.event.Series = &eventsv1.EventSeries{Count: 1}
	}
	s.event.Series.Count++
	s.event.Series.LastObservedTime = e.EventTime
	s.written = false
}

// A sender sends what a recorder has queued. It belongs to one goroutine.
type sender struct {
	*Recorder
	known  map[key]*series
	limits map[string]flowcontrol.PassiveRateLimiter // by the kind of object
}

// Run sends events until ctx is done, and then what is left, for up to two
// seconds. It is called once.
func (r *Recorder) Run(ctx context.Context) {
	if r == nil {
		return
	}
	s := &sender{r, map[key]*series{}, map[string]flowcontrol.PassiveRateLimiter{}}
	ticks := time.NewTicker(quiet)
	defer ticks.Stop()
	sending, stop := outlast(ctx, grace)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			s.drain(sending)
			return
		case e := <-r.queue:
			s.send(sending, e)
		case <-ticks.C:
			s.review(sending)
		}
	}
}

// outlast is a context that is done d after ctx is.
func outlast(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		wait(late, d)
		cancel()
	})
	return late, func() { stop(); cancel() }
}

// drain sends what is queued.
func (s *sender) drain(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case e := <-s.queue:
			s.send(ctx, e)
		default:
			return
		}
	}
}

// send writes an event that is new or happens for the second time. Later ones
// are counted, and written with the count by review.
func (s *sender) send(ctx context.Context, e *eventsv1.Event) {
	k := keyOf(e)
	if old, ok := s.known[k]; ok {
		old.again(e)
		if old.event.Series.Count == 2 {
			s.write(ctx, old)
		}
		return
	}
	if !s.limit(e.Regarding.Kind).TryAccept() {
		s.drop(e)
		return
	}
	s.known[k] = &series{event: e}
	s.write(ctx, s.known[k])
}

func (s *sender) limit(kind string) flowcontrol.PassiveRateLimiter {
	if s.limits[kind] == nil {
		s.limits[kind] = flowcontrol.NewTokenBucketPassiveRateLimiter(rate, burst)
	}
	return s.limits[kind]
}

// review writes the counts that have changed, and forgets what is over.
func (s *sender) review(ctx context.Context) {
	for k, one := range s.known {
		if one.event.Series != nil && !one.written {
			s.write(ctx, one)
		}
		if time.Since(one.last()) >= quiet {
			delete(s.known, k)
		}
	}
}

// write makes the API server have a series, or logs why it does not. While the
// API server does not answer, it tries again, and events queue up.
func (s *sender) write(ctx context.Context, one *series) {
	var err error
	for try := range tries {
		if try > 0 && !wait(ctx, retry+rand.N(retry/4)) {
			break
		}
		if err = s.put(ctx, one.event); err == nil || refused(err) {
			break
		}
	}
	if one.written = err == nil; !one.written {
		s.log.Warn("an event was not recorded", append(describe(one.event), zap.Error(err))...)
	}
}

// put creates an event, or changes its series if there is one. The API server
// forgets events after an hour.
func (s *sender) put(ctx context.Context, e *eventsv1.Event) error {
	if e.Series != nil {
		patch, err := json.Marshal(map[string]any{"series": e.Series})
		if err != nil {
			return fmt.Errorf("encode series: %w", err)
		}
		if err := s.patch(ctx, e, patch); !apierrors.IsNotFound(err) {
			return err
		}
	}
	return s.create(ctx, e)
}

// refused reports whether the API server has answered, and will not answer
// otherwise.
func refused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// wait reports whether d has passed before ctx was done.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
