package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nlproxy/nlproxy/dataplane"
)

// syncMetrics are about the rules that were written.
type syncMetrics struct {
	group
	transactions, operations, bytes, kernel, overwritten prometheus.Counter
	aside                                                prometheus.Gauge
}

func newSyncMetrics() syncMetrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	s := syncMetrics{
		transactions: counter("nlproxy_transactions_total", "Transactions of rules that the kernel has committed."),
		operations:   counter("nlproxy_operations_total", "Rules, chains and other objects that these transactions made or deleted."),
		bytes:        counter("nlproxy_transaction_bytes_total", "Size of these transactions on the netlink socket."),
		kernel:       counter("nlproxy_kernel_seconds_total", "Time spent waiting for the kernel while rules were compared and written."),
		overwritten:  counter("nlproxy_rules_overwritten_total", "Times that rules of ours were found changed or removed by somebody else."),
		aside: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "nlproxy_services_aside",
			Help: "Services that the kernel refuses, and that are not served until it takes them.",
		}),
	}
	s.group = group{s.transactions, s.operations, s.bytes, s.kernel, s.overwritten, s.aside}
	return s
}

func (s syncMetrics) observe(r dataplane.Report) {
	s.transactions.Add(float64(r.Transactions))
	s.operations.Add(float64(r.Operations))
	s.bytes.Add(float64(r.Bytes))
	s.kernel.Add(r.Kernel.Seconds())
	s.overwritten.Add(float64(r.Overwritten))
	s.aside.Set(float64(len(r.Aside)))
}
