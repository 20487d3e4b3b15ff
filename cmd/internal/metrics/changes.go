package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nlproxy/nlproxy/watch"
)

// changes collects what was watched, under kube-proxy's names. A Service counts
// once for both families, where kube-proxy counts it once for each.
type changes struct{ read func() watch.Changes }

// changeReading is one metric of watch.Changes.
type changeReading struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(watch.Changes) int
}

var changeReadings = []changeReading{
	{prometheus.NewDesc(syncPrefix+"service_changes_total", "Changes of Services.", nil, nil),
		prometheus.CounterValue, func(c watch.Changes) int { return c.Services }},
	{prometheus.NewDesc(syncPrefix+"service_changes_pending", "Changed Services that no synchronisation has taken up yet.", nil, nil),
		prometheus.GaugeValue, func(c watch.Changes) int { return c.ServicesPending }},
	{prometheus.NewDesc(syncPrefix+"endpoint_changes_total", "Changes of EndpointSlices.", nil, nil),
		prometheus.CounterValue, func(c watch.Changes) int { return c.Endpoints }},
	{prometheus.NewDesc(syncPrefix+"endpoint_changes_pending", "Changes of EndpointSlices that no synchronisation has taken up yet.", nil, nil),
		prometheus.GaugeValue, func(c watch.Changes) int { return c.EndpointsPending }},
}

func (changes) Describe(descs chan<- *prometheus.Desc) {
	for _, r := range changeReadings {
		descs <- r.desc
	}
}

func (c changes) Collect(metrics chan<- prometheus.Metric) {
	now := c.read()
	for _, r := range changeReadings {
		metrics <- prometheus.MustNewConstMetric(r.desc, r.kind, float64(r.value(now)))
	}
}
