package health

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// host is where ports are opened in a test: a place is taken or not.
type host struct {
	mu    sync.Mutex
	taken map[string]bool
	open  map[string]*socket
	tries int
}

type socket struct {
	net.Listener // for the methods that nobody calls
	host         *host
	at           string
	closed       chan struct{}
	broken       chan error
	once         sync.Once
}

func newHost(p *Ports, taken ...string) *host {
	h := &host{taken: map[string]bool{}, open: map[string]*socket{}}
	for _, at := range taken {
		h.taken[at] = true
	}
	p.listen = func(_ context.Context, at place) (net.Listener, error) { return h.listen(at) }
	return h
}

func (h *host) listen(at place) (net.Listener, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tries++
	name := at.network + " " + at.addr.String()
	if h.taken[name] || h.open[name] != nil {
		return nil, fmt.Errorf("%s is taken", name)
	}
	h.open[name] = &socket{host: h, at: name, closed: make(chan struct{}), broken: make(chan error)}
	return h.open[name], nil
}

func (s *socket) Accept() (net.Conn, error) {
	select {
	case <-s.closed:
		return nil, net.ErrClosed
	case err := <-s.broken:
		return nil, err
	}
}

func (s *socket) Close() error {
	s.once.Do(func() {
		close(s.closed)
		s.host.mu.Lock()
		defer s.host.mu.Unlock()
		delete(s.host.open, s.at)
	})
	return nil
}

// free says that nobody else has a place any more.
func (h *host) free(at string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.taken, at)
}

func (h *host) expect(t *testing.T, places ...string) {
	t.Helper()
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	if got := slices.Sorted(maps.Keys(h.open)); !slices.Equal(got, slices.Sorted(slices.Values(places))) {
		t.Errorf("listens at %q, want %q", got, places)
	}
}

// run runs p until the end of the test, which fails if anything is left then.
func run(t *testing.T, p *Ports, h *host) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { p.Run(ctx); close(ended) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		if len(h.open) > 0 || p.Failing() != 0 {
			t.Errorf("left open: %v; %d failing", slices.Collect(maps.Keys(h.open)), p.Failing())
		}
	})
}
