package metrics

import "github.com/prometheus/client_golang/prometheus"

var healthPortsDesc = prometheus.NewDesc("nlproxy_service_health_port_failures",
	"Health-check node ports that cannot be opened now.", nil, nil)

// healthPorts collects how many health-check node ports cannot be opened.
type healthPorts struct{ failing func() int }

func (healthPorts) Describe(descs chan<- *prometheus.Desc) { descs <- healthPortsDesc }

func (h healthPorts) Collect(metrics chan<- prometheus.Metric) {
	metrics <- prometheus.MustNewConstMetric(healthPortsDesc, prometheus.GaugeValue, float64(h.failing()))
}
