package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nlproxy/nlproxy/conntrack"
)

// reading is one metric of conntrack.Stats.
type reading struct {
	name, help string
	kind       prometheus.ValueType
	value      func(conntrack.Stats) float64
}

// tableReadings all begin with nlproxy_conntrack_.
var tableReadings = []reading{
	{"entries", "Flows in the table of connection tracking.", prometheus.GaugeValue,
		func(s conntrack.Stats) float64 { return float64(s.Entries) }},
	{"limit", "Flows that the table of connection tracking may hold; 0 for no limit.", prometheus.GaugeValue,
		func(s conntrack.Stats) float64 { return float64(s.Limit) }},
	{"fill_ratio", "Entries divided by limit: at 1 new connections are dropped.", prometheus.GaugeValue,
		conntrack.Stats.Fill},
	{"insert_failed_total", "Packets lost because their new flow clashed with another one, or its hash bucket was too long.", prometheus.CounterValue,
		func(s conntrack.Stats) float64 { return float64(s.InsertFailed) }},
	{"drops_total", "Packets lost because the table was full, or their new flow clashed with another one.", prometheus.CounterValue,
		func(s conntrack.Stats) float64 { return float64(s.Drop) }},
	{"early_drops_total", "Flows that had to make room for new ones in a full table.", prometheus.CounterValue,
		func(s conntrack.Stats) float64 { return float64(s.EarlyDrop) }},
	{"invalid_total", "Packets that belong to no flow and may not begin one.", prometheus.CounterValue,
		func(s conntrack.Stats) float64 { return float64(s.Invalid) }},
	{"chain_too_long_total", "New flows refused because their hash bucket was too long: there are too few buckets.", prometheus.CounterValue,
		func(s conntrack.Stats) float64 { return float64(s.ChainTooLong) }},
	{"clash_resolved_total", "Packets that began the same flow at the same time as others and got through all the same.", prometheus.CounterValue,
		func(s conntrack.Stats) float64 { return float64(s.ClashResolved) }},
}

// table collects what the kernel says of its table of flows.
type table struct {
	read  func() (conntrack.Stats, error)
	descs []*prometheus.Desc // as tableReadings
}

func newTable(read func() (conntrack.Stats, error)) table {
	t := table{read: read}
	for _, r := range tableReadings {
		t.descs = append(t.descs, prometheus.NewDesc("nlproxy_conntrack_"+r.name, r.help, nil, nil))
	}
	return t
}

func (t table) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range t.descs {
		descs <- d
	}
}

func (t table) Collect(metrics chan<- prometheus.Metric) {
	s, err := t.read()
	if err != nil {
		metrics <- prometheus.NewInvalidMetric(t.descs[0], err)
		return
	}
	for i, r := range tableReadings {
		metrics <- prometheus.MustNewConstMetric(t.descs[i], r.kind, r.value(s))
	}
}

var unwritableDesc = prometheus.NewDesc("nlproxy_conntrack_unwritable",
	"1 for each setting of connection tracking that is not as it should be and cannot be changed.", []string{"setting"}, nil)

// unwritable collects the settings that could not be changed.
type unwritable struct{ list func() []conntrack.Unwritable }

func (unwritable) Describe(descs chan<- *prometheus.Desc) { descs <- unwritableDesc }

func (u unwritable) Collect(metrics chan<- prometheus.Metric) {
	for _, s := range u.list() {
		metrics <- prometheus.MustNewConstMetric(unwritableDesc, prometheus.GaugeValue, 1, s.Setting)
	}
}

// flowMetrics are about what was removed from connection tracking.
type flowMetrics struct {
	group
	deleted *prometheus.CounterVec
}

func newFlowMetrics() flowMetrics {
	deleted := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "nlproxy_conntrack_flows_deleted_total",
		Help: "Flows that were removed from connection tracking because they led elsewhere than new ones may, by reason.",
	}, []string{"reason"})
	for _, reason := range conntrack.Orphans {
		deleted.WithLabelValues(label(reason)) // which shows as 0
	}
	return flowMetrics{group{deleted}, deleted}
}

func (f flowMetrics) observe(p conntrack.Pass) {
	for reason, n := range p.Deleted {
		f.deleted.WithLabelValues(label(reason)).Add(float64(n))
	}
}

// label is a reason as Prometheus' labels are written.
func label(reason conntrack.Orphan) string { return strings.ReplaceAll(reason.String(), " ", "_") }
