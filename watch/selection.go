package watch

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// selection lists and watches the objects of one kind that matter, and says
// when that fails and when it works again.
//
// A server that does not know the field selector refuses it as a bad request:
// spec.clusterIP is selectable since Kubernetes 1.32. Then the selector is left
// out, and reducing the objects does what it would have done.
type selection struct {
	kind   string
	from   *cache.ListWatch
	labels string
	fields string
	access access
	log    *zap.Logger

	mu      sync.Mutex
	refused bool
	worked  bool // once at least
	// failing is since when, complained when that was last logged.
	failing, complained time.Time
}

// ListWithContext lists the selected objects.
func (s *selection) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	return selected(ctx, s, o, s.from.ListWithContext)
}

// WatchWithContext watches the selected objects.
func (s *selection) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return selected(ctx, s, o, s.from.WatchWithContext)
}

// List is ListWithContext for those who have no context.
func (s *selection) List(o metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), o)
}

// Watch is WatchWithContext for those who have no context.
func (s *selection) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), o)
}

var _ interface {
	cache.ListerWatcher
	cache.ListerWatcherWithContext
} = (*selection)(nil)

// selected makes a request with the selectors, and if the field selector seems
// to be why it fails, once more without.
func selected[T any](ctx context.Context, s *selection, o metav1.ListOptions, request func(context.Context, metav1.ListOptions) (T, error)) (T, error) {
	o.LabelSelector, o.FieldSelector = s.labels, s.fieldSelector()
	got, err := request(ctx, o)
	if apierrors.IsBadRequest(err) && o.FieldSelector != "" {
		o.FieldSelector = ""
		if plain, again := request(ctx, o); again == nil {
			s.refuse(err)
			got, err = plain, nil
		}
	}
	s.outcome(ctx, err)
	return got, err
}

func (s *selection) fieldSelector() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused {
		return ""
	}
	return s.fields
}

func (s *selection) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = true
	s.log.Info("the API server does not know a field selector; all objects are received instead",
		zap.String("kind", s.kind), zap.String("selector", s.fields), zap.Error(err))
}

// complainEvery is how often a failure that goes on is logged.
const complainEvery = time.Minute

// outcome logs the first failure in a row, every minute that it goes on, and
// its end. An answer that asks for another kind of request is no failure: the
// reflector makes that.
func (s *selection) outcome(ctx context.Context, err error) {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) || anotherRequest(err) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	switch {
	case err == nil && !s.failing.IsZero():
		s.worked = true
		s.log.Info("can list and watch again", zap.String("kind", s.kind), zap.Duration("after", now.Sub(s.failing)))
		s.failing = time.Time{}
	case err == nil:
		s.worked = true
	case s.failing.IsZero():
		s.failing = now
		s.complain(now, err)
	case now.Sub(s.complained) >= complainEvery:
		s.complain(now, err)
	}
}

func (s *selection) complain(now time.Time, err error) {
	s.complained = now
	what := "cannot list yet; nothing is programmed before the first list of each kind"
	if s.worked {
		what = "cannot list or watch; what was read last stays in force"
	}
	fields := append(s.access.fields(err), zap.String("kind", s.kind))
	if going := now.Sub(s.failing); going > 0 {
		fields = append(fields, zap.Duration("for", going))
	}
	s.log.Warn(what, append(fields, zap.Error(plain(err)))...)
}

// plain is err without the URL of the request, which is long and says nothing
// that the server and the kind do not.
func plain(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// anotherRequest is true if the server cannot go on from the given version, or
// cannot stream a list.
func anotherRequest(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err) ||
		apierrors.IsTooManyRequests(err)
}
