package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nlproxy/nlproxy/dataplane"
)

// pending knows since when something is to be written. The timestamps of
// kube-proxy's metrics do not tell: where nothing follows a change that fails,
// they stand still, as they do where nothing changes.
type pending struct {
	mu sync.Mutex
	// since is the time of the oldest change that is not written, zero if there
	// is none, and last that of the newest of all.
	since, last time.Time
}

func (p *pending) gauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "nlproxy_rules_pending_seconds",
		Help: "For how long a change has been waiting to be written, or a synchronisation failing; 0 if all is written.",
	}, p.seconds)
}

func (p *pending) seconds() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		return 0
	}
	return time.Since(p.since).Seconds()
}

// queue notes that something changed now.
func (p *pending) queue() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
	if p.since.IsZero() {
		p.since = p.last
	}
}

// observe is told of a synchronisation that ended now. What came while it ran
// is not in it, and waits for the next.
func (p *pending) observe(r dataplane.Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	begin := time.Now().Add(-r.Duration)
	switch {
	case r.Err == nil && p.last.After(begin):
		p.since = p.last
	case r.Err == nil:
		p.since = time.Time{}
	case p.since.IsZero():
		p.since = begin
	}
}
