package metrics

import "github.com/prometheus/client_golang/prometheus"

func configurationRefused(refused func() bool) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "nlproxy_configuration_refused",
		Help: "1 while the configuration file cannot be used and the one before is in force: a new start would fail.",
	}, func() float64 {
		if refused() {
			return 1
		}
		return 0
	})
}
