package metrics

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

	"github.com/nlproxy/nlproxy/conntrack"
	"github.com/nlproxy/nlproxy/dataplane"
)

// Options configures New. The zero value is usable.
type Options struct {
	// Stats is conntrack.ReadStats, or stands in for it; nil for no metrics of
	// connection tracking. It is called at each scrape.
	Stats func() (conntrack.Stats, error)
	// Unwritable returns the settings that are not as they should be, as
	// conntrack.Applier does; nil for none. It is called at each scrape.
	Unwritable func() []conntrack.Unwritable
	// Logger is warned of what could not be read or served; nil for none.
	Logger *zap.Logger
}

// Metrics are all metrics whose names begin with nlproxy_.
type Metrics struct {
	registry *prometheus.Registry
	log      *zap.Logger

	flowsDeleted *prometheus.CounterVec
	sync         syncMetrics
}

// New makes the metrics and their registry.
func New(o Options) (*Metrics, error) {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		log:      o.Logger,
		sync:     newSyncMetrics(),
		flowsDeleted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nlproxy_conntrack_flows_deleted_total",
			Help: "Flows that were removed from connection tracking because they led elsewhere than new ones may, by reason.",
		}, []string{"reason"}),
	}
	if m.log == nil {
		m.log = zap.NewNop()
	}
	for _, reason := range conntrack.Orphans {
		m.flowsDeleted.WithLabelValues(label(reason)) // which shows as 0
	}
	collectors := append(m.sync.collectors(), m.flowsDeleted)
	if o.Stats != nil {
		collectors = append(collectors, newTable(o.Stats))
	}
	if o.Unwritable != nil {
		collectors = append(collectors, unwritable{o.Unwritable})
	}
	for _, c := range collectors {
		if err := m.registry.Register(c); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	return m, nil
}

// Handler serves the metrics. What cannot be read is left out and logged.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError,
		ErrorLog:      printer{m.log},
	})
}

// printer hands what promhttp has to say to a zap.Logger.
type printer struct{ log *zap.Logger }

func (p printer) Println(v ...any) {
	p.log.Warn("metrics are not complete", zap.Any("reason", v[len(v)-1]))
}

// ObserveFlows counts what was removed from connection tracking. It is for
// conntrack.CleanerOptions.Observer.
func (m *Metrics) ObserveFlows(p conntrack.Pass) {
	for reason, n := range p.Deleted {
		m.flowsDeleted.WithLabelValues(label(reason)).Add(float64(n))
	}
}

// label is a reason as Prometheus' labels are written.
func label(reason conntrack.Orphan) string { return strings.ReplaceAll(reason.String(), " ", "_") }

// Observe counts what a synchronisation did. It is for
// dataplane.Options.Observer.
func (m *Metrics) Observe(r dataplane.Report) { m.sync.observe(r) }
