package health

import (
	"fmt"
	"sync"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// Options configures a Server.
type Options struct {
	// Late is for how long rules may wait to be written before the node counts
	// as unhealthy: twice the sync period with kube-proxy. It has to be positive.
	Late time.Duration
	// Eligible reports whether this node may have new traffic: it exists and is
	// not about to be deleted. It must not wait. Nil for always.
	Eligible func() bool
	// Answered, if set, is called with the path and status of each answer. It
	// must not wait.
	Answered func(path string, code int)
}

// Validate names the first field that cannot be used.
func (o Options) Validate() error {
	if o.Late <= 0 {
		return fmt.Errorf("health: Late %v is not positive", o.Late)
	}
	return nil
}

// Server knows how old what is not yet in the kernel is.
type Server struct {
	opts Options

	mu sync.Mutex
	// synced is when a family's rules were last as they should be, and queued
	// since when something waits to be written.
	synced, queued map[model.Family]time.Time
}

// New returns a Server that knows of no family, and is healthy.
func New(o Options) (*Server, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Eligible == nil {
		o.Eligible = func() bool { return true }
	}
	if o.Answered == nil {
		o.Answered = func(string, int) {}
	}
	return &Server{opts: o, synced: map[model.Family]time.Time{}, queued: map[model.Family]time.Time{}}, nil
}

// Queued says that there is something to be written for these families. What
// waits already goes on waiting.
func (s *Server) Queued(families ...model.Family) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, f := range families {
		if _, waits := s.queued[f]; !waits {
			s.queued[f] = now
		}
	}
}

// Synced says that all there was to be written has been, and names the families
// that are served: a family that this kernel turned out not to have waits for
// nothing. Before anything is written it says what is going to be served, from
// when on that may not take too long.
func (s *Server) Synced(families ...model.Family) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	clear(s.queued)
	clear(s.synced)
	for _, f := range families {
		s.synced[f] = now
	}
}

// Healthy reports whether nothing has been waiting for too long.
func (s *Server) Healthy() bool { return s.status(time.Now()).Healthy }

// status is how things stand at the time now.
func (s *Server) status(now time.Time) status {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := status{CurrentTime: now, Healthy: true, Families: make(map[string]familyStatus, len(s.synced))}
	for f, synced := range s.synced {
		since, waits := s.queued[f]
		healthy := !waits || now.Sub(since) < s.opts.Late
		all.Families[f.String()] = familyStatus{LastUpdated: synced, Healthy: healthy}
		all.Healthy = all.Healthy && healthy
		if synced.After(all.LastUpdated) {
			all.LastUpdated = synced
		}
	}
	return all
}
