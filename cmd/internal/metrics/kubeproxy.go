package metrics

import (
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nlproxy/nlproxy/conntrack"
	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

// kubeproxy are the metrics that kube-proxy 1.37 has in iptables mode, by its
// names, types, labels and buckets (pkg/proxy/metrics/metrics.go). They change
// when kube-proxy's do (pkg/proxy/iptables/proxier.go); where both families are
// written in one transaction, what is said of that is said of both.
type kubeproxy struct {
	group
	duration, full, partial, programming, reconciling *prometheus.HistogramVec

	lastQueued, lastSynced, lastSyncedOld *prometheus.GaugeVec
	rules, written, noLocal               *prometheus.GaugeVec

	failures, partialFailures, reconciled *prometheus.CounterVec
	healthz, livez                        *prometheus.CounterVec
}

const (
	familyLabel = "ip_family"
	syncPrefix  = "kubeproxy_sync_proxy_rules_"
)

// syncBuckets are from a millisecond to 16 seconds.
func syncBuckets() []float64 { return prometheus.ExponentialBuckets(0.001, 2, 15) }

// programmingBuckets are from a quarter of a second to five minutes, and one for
// what clocks that differ make of less than nothing.
func programmingBuckets() []float64 {
	return slices.Concat(
		[]float64{0},
		prometheus.LinearBuckets(0.25, 0.25, 2),
		prometheus.LinearBuckets(1, 1, 59),
		prometheus.LinearBuckets(60, 5, 12),
		prometheus.LinearBuckets(120, 30, 7),
	)
}

func newKubeproxy() kubeproxy {
	var k kubeproxy
	histogram := func(to **prometheus.HistogramVec, name string, buckets []float64, help string) {
		*to = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{familyLabel})
		k.group = append(k.group, *to)
	}
	gauge := func(to **prometheus.GaugeVec, name, help string, labels ...string) {
		*to = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
		k.group = append(k.group, *to)
	}
	counter := func(to **prometheus.CounterVec, name, help string, labels ...string) {
		*to = prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		k.group = append(k.group, *to)
	}
	histogram(&k.duration, syncPrefix+"duration_seconds", syncBuckets(), "Time that a synchronisation of the rules took.")
	histogram(&k.full, "kubeproxy_sync_full_proxy_rules_duration_seconds", syncBuckets(), "Time that a synchronisation took which compared all rules.")
	histogram(&k.partial, "kubeproxy_sync_partial_proxy_rules_duration_seconds", syncBuckets(), "Time that a synchronisation took of what had changed.")
	histogram(&k.programming, "kubeproxy_network_programming_duration_seconds", programmingBuckets(),
		"Time from a change of a service or a pod until the rules agreed with it, one for each change of an EndpointSlice.")
	histogram(&k.reconciling, "kubeproxy_conntrack_reconciler_sync_duration_seconds", syncBuckets(), "Time that a look through the flows of connection tracking took.")

	gauge(&k.lastQueued, syncPrefix+"last_queued_timestamp_seconds", "When a synchronisation was last asked for.", familyLabel)
	gauge(&k.lastSynced, syncPrefix+"last_timestamp_seconds", "When a synchronisation last succeeded.", familyLabel)
	gauge(&k.lastSyncedOld, syncPrefix+"last_timestamp", "When a synchronisation last succeeded, by an older name.", familyLabel)
	gauge(&k.rules, syncPrefix+"iptables_total", "Rules in KUBE-* chains.", "table", familyLabel)
	gauge(&k.written, syncPrefix+"iptables_last", "Rules in KUBE-* chains that the last synchronisation wrote.", "table", familyLabel)
	gauge(&k.noLocal, syncPrefix+"no_local_endpoints_total",
		"Service ports with a traffic policy Local whose endpoints are all on other nodes.", "traffic_policy", familyLabel)

	counter(&k.failures, syncPrefix+"iptables_restore_failures_total", "Transactions of rules that failed.", familyLabel)
	counter(&k.partialFailures, syncPrefix+"iptables_partial_restore_failures_total",
		"Transactions of only what had changed that failed, so that all rules were compared.", familyLabel)
	counter(&k.reconciled, "kubeproxy_conntrack_reconciler_deleted_entries_total", "Flows that were removed from connection tracking.", familyLabel)
	counter(&k.healthz, "kubeproxy_proxy_healthz_total", "Answers to requests for /healthz, by HTTP status.", "code")
	counter(&k.livez, "kubeproxy_proxy_livez_total", "Answers to requests for /livez, by HTTP status.", "code")
	return k
}

func (k kubeproxy) observe(r dataplane.Report) {
	for _, f := range model.Families {
		if slices.Contains(r.Families, f) {
			k.observeFamily(r, f)
		} else { // of which nothing waits
			k.lastQueued.DeleteLabelValues(f.String())
		}
	}
	for table, n := range r.Rules {
		if slices.Contains(r.Families, table.Family) && slices.Contains(shownTables, table.Name) {
			k.rules.WithLabelValues(table.Name, table.Family.String()).Set(float64(n))
			k.written.WithLabelValues(table.Name, table.Family.String()).Set(float64(r.Written[table]))
		}
	}
	if r.Err != nil {
		return
	}
	for _, t := range r.Triggers {
		if slices.Contains(r.Families, t.Family) {
			k.programming.WithLabelValues(t.Family.String()).Observe(time.Since(t.At).Seconds())
		}
	}
}

// shownTables are those whose rules kube-proxy counts.
var shownTables = []string{"filter", "nat"}

func (k kubeproxy) observeFamily(r dataplane.Report, f model.Family) {
	family := f.String()
	k.duration.WithLabelValues(family).Observe(r.Duration.Seconds())
	some := k.partial
	if r.Full {
		some = k.full
	}
	some.WithLabelValues(family).Observe(r.Duration.Seconds())
	add(k.failures, r.Failures, family)
	add(k.partialFailures, r.PartialFailures, family)
	if r.Err != nil {
		return
	}
	k.noLocal.WithLabelValues("internal", family).Set(float64(r.NoLocal[f].Internal))
	k.noLocal.WithLabelValues("external", family).Set(float64(r.NoLocal[f].External))
	k.lastSynced.WithLabelValues(family).SetToCurrentTime()
	k.lastSyncedOld.WithLabelValues(family).SetToCurrentTime()
}

// add shows nothing before the first of n.
func add(to *prometheus.CounterVec, n int, label string) {
	if n > 0 {
		to.WithLabelValues(label).Add(float64(n))
	}
}

func (k kubeproxy) queue(families []model.Family) {
	for _, f := range families {
		k.lastQueued.WithLabelValues(f.String()).SetToCurrentTime()
	}
}

// observeFlows is told of a look at the flows of both families.
func (k kubeproxy) observeFlows(p conntrack.Pass) {
	for _, f := range model.Families {
		k.reconciling.WithLabelValues(f.String()).Observe(p.Duration.Seconds())
		k.reconciled.WithLabelValues(f.String()).Add(float64(p.ByFamily[f]))
	}
}

func (k kubeproxy) observeHealth(path string, code int) {
	status := strconv.Itoa(code)
	switch path {
	case "/healthz":
		k.healthz.WithLabelValues(status).Inc()
	case "/livez":
		k.livez.WithLabelValues(status).Inc()
	}
}
