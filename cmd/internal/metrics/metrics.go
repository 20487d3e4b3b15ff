package metrics

import (
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"

	"github.com/nlproxy/nlproxy/conntrack"
	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/watch"
)

// Options configures New. The zero value is usable. Functions are called at each
// scrape or request, from any goroutine; what a nil one would tell is not shown.
type Options struct {
	// Stats is conntrack.ReadStats, or stands in for it.
	Stats func() (conntrack.Stats, error)
	// Unwritable returns the settings that are not as they should be, as
	// conntrack.Applier does.
	Unwritable func() []conntrack.Unwritable
	// Changes counts what was watched, as watch.Source does.
	Changes func() watch.Changes
	// Counter reads a named counter of the kernel, as kernel.Conn does. A scrape
	// waits for it, so it is not that of the connection which writes rules.
	Counter func(name string) (packets, bytes uint64, err error)
	// Clients are those of the process, which outlive a Metrics.
	Clients *Clients
	// HealthPortsFailing returns how many health-check node ports cannot be
	// opened.
	HealthPortsFailing func() int
	// ConfigurationRefused reports whether the configuration file holds something
	// that cannot be used, so that the one before is in force.
	ConfigurationRefused func() bool

	// Mode is what /proxyMode says; empty means iptables.
	Mode string
	// Configuration returns what /configz shows: a value that encoding/json
	// writes as the configuration file has it.
	Configuration func() any
	// Profiling serves /debug/pprof and /debug/flags.
	Profiling bool
	// SetVerbosity takes what is put to /debug/flags/v, a level as -v has it. An
	// error refuses it.
	SetVerbosity func(level string) error
	// Statusz and Flagz serve /statusz and /flagz.
	Statusz, Flagz bool
	// Flags are what /flagz shows: those of the command line with their values.
	Flags map[string]string
	// Build says what was built; zero for what the binary says of itself.
	Build Build

	// Logger is warned of what could not be read or served; nil for none.
	Logger *zap.Logger
}

// Metrics are kube-proxy's metrics by their names, ours with names that begin
// with nlproxy_, and those that client-go, Go and the process have.
type Metrics struct {
	opts     Options
	registry *prometheus.Registry
	slis     *slis
	log      *zap.Logger

	kubeproxy kubeproxy
	sync      syncMetrics
	flows     flowMetrics
	pending   pending
	// families are those that are served, as far as is known.
	families atomic.Pointer[[]model.Family]
}

// New makes the metrics and their registry.
func New(o Options) (*Metrics, error) {
	m := &Metrics{
		opts:      o,
		registry:  prometheus.NewRegistry(),
		slis:      newSLIs(),
		log:       o.Logger,
		kubeproxy: newKubeproxy(),
		sync:      newSyncMetrics(),
		flows:     newFlowMetrics(),
	}
	if m.opts.Mode == "" {
		m.opts.Mode = "iptables"
	}
	if m.log == nil {
		m.log = zap.NewNop()
	}
	m.opts.Build = o.Build.withDefaults()
	both := model.Families[:]
	m.families.Store(&both)
	for _, c := range m.collectors() {
		if err := m.registry.Register(c); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	return m, nil
}

func (m *Metrics) collectors() []prometheus.Collector {
	all := []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.kubeproxy, m.sync, m.flows, m.pending.gauge(), m.opts.Build,
	}
	o := m.opts
	if o.Stats != nil {
		all = append(all, newTable(o.Stats))
	}
	if o.Unwritable != nil {
		all = append(all, unwritable{o.Unwritable})
	}
	if o.Changes != nil {
		all = append(all, changes{o.Changes})
	}
	if o.Counter != nil {
		all = append(all, counters{o.Counter})
	}
	if o.Clients != nil {
		all = append(all, o.Clients)
	}
	if o.HealthPortsFailing != nil {
		all = append(all, healthPorts{o.HealthPortsFailing})
	}
	if o.ConfigurationRefused != nil {
		all = append(all, configurationRefused(o.ConfigurationRefused))
	}
	return all
}

// Observe counts what a synchronisation did. It is for
// dataplane.Options.Observer.
func (m *Metrics) Observe(r dataplane.Report) {
	m.families.Store(&r.Families)
	m.kubeproxy.observe(r)
	m.sync.observe(r)
	m.pending.observe(r)
}

// ObserveFlows counts what was removed from connection tracking. It is for
// conntrack.CleanerOptions.Observer.
func (m *Metrics) ObserveFlows(p conntrack.Pass) {
	m.kubeproxy.observeFlows(p)
	m.flows.observe(p)
}

// ObserveHealth counts an answer to a request for /healthz or /livez by its
// HTTP status.
func (m *Metrics) ObserveHealth(path string, code int) { m.kubeproxy.observeHealth(path, code) }

// Queued notes that a synchronisation was asked for now, because something
// changed in these families; without any, in all that are served.
func (m *Metrics) Queued(families ...model.Family) {
	if len(families) == 0 {
		families = *m.families.Load()
	}
	m.kubeproxy.queue(families)
	m.pending.queue()
}
