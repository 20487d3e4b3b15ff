package metrics

import (
	"errors"
	"io/fs"

	"github.com/prometheus/client_golang/prometheus"
)

// counters collects what the kernel counts by name (nfnetlink_acct). A counter
// that it does not have is not shown.
type counters struct {
	read func(name string) (packets, bytes uint64, err error)
}

// counterNames are those that rules count in, with their metrics: the names of
// iptables.InvalidDropped and iptables.LocalhostNodePorts, which are kube-proxy's.
var counterNames = []struct {
	counter string
	desc    *prometheus.Desc
}{
	{"ct_state_invalid_dropped_pkts", prometheus.NewDesc("kubeproxy_iptables_ct_state_invalid_dropped_packets_total",
		"Forwarded packets dropped because they belong to no flow and may not begin one.", nil, nil)},
	{"localhost_nps_accepted_pkts", prometheus.NewDesc("kubeproxy_iptables_localhost_nodeports_accepted_packets_total",
		"Packets to node ports on loopback addresses.", nil, nil)},
}

func (counters) Describe(descs chan<- *prometheus.Desc) {
	for _, c := range counterNames {
		descs <- c.desc
	}
}

func (c counters) Collect(metrics chan<- prometheus.Metric) {
	for _, named := range counterNames {
		packets, _, err := c.read(named.counter)
		switch {
		case err == nil:
			metrics <- prometheus.MustNewConstMetric(named.desc, prometheus.CounterValue, float64(packets))
		case !errors.Is(err, fs.ErrNotExist):
			metrics <- prometheus.NewInvalidMetric(named.desc, err)
		}
	}
}
