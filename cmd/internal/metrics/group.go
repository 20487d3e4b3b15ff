package metrics

import "github.com/prometheus/client_golang/prometheus"

// group is a prometheus.Collector of several.
type group []prometheus.Collector

func (g group) Describe(descs chan<- *prometheus.Desc) {
	for _, c := range g {
		c.Describe(descs)
	}
}

func (g group) Collect(metrics chan<- prometheus.Metric) {
	for _, c := range g {
		c.Collect(metrics)
	}
}
