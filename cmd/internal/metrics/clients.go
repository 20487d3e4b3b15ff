package metrics

import (
	"context"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/metrics"
)

// Clients counts the requests of this process to API servers, by the names,
// types, labels and buckets that every component of Kubernetes gives them
// (component-base 1.37, metrics/prometheus/restclient). Those of exec plugins
// are left out: no program is run to get credentials.
//
// That package itself is not used: it brings component-base/metrics along, a
// registry of the process with all metrics in it.
type Clients struct {
	group
	latency, limiter          *prometheus.HistogramVec // verb, host
	requestSize, responseSize *prometheus.HistogramVec // verb, host
	requests, retries         *prometheus.CounterVec   // code, method or verb, host
	transports                prometheus.Gauge
	created, collected        *prometheus.CounterVec // result
	authorities               *prometheus.CounterVec // result, reason
	rotations                 prometheus.Counter
}

func secondsBuckets() []float64 {
	return []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60}
}

func bytesBuckets() []float64 {
	return []float64{64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216}
}

func newClients() *Clients {
	c := &Clients{}
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "rest_client_" + name, Help: help, Buckets: buckets}, []string{"verb", "host"})
		c.group = append(c.group, v)
		return v
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rest_client_" + name, Help: help}, labels)
		c.group = append(c.group, v)
		return v
	}
	c.latency = histogram("request_duration_seconds", "Time that requests to the API server took.", secondsBuckets())
	c.limiter = histogram("rate_limiter_duration_seconds", "Time that requests had to wait for our own limit of their rate.", secondsBuckets())
	c.requestSize = histogram("request_size_bytes", "Size of requests.", bytesBuckets())
	c.responseSize = histogram("response_size_bytes", "Size of answers.", bytesBuckets())
	c.requests = counter("requests_total", "Requests, by HTTP status.", "code", "method", "host")
	c.retries = counter("request_retries_total", "Requests that were repeated, by the HTTP status before.", "code", "verb", "host")
	c.created = counter("transport_create_calls_total", "Requests for a transport, by what its cache had.", "result")
	c.collected = counter("transport_cache_gc_calls_total", "Transports that were not needed any more, by what became of them.", "result")
	c.authorities = counter("transport_ca_reload_total", "Attempts to read the file of a certificate authority again.", "result", "reason")
	c.transports = prometheus.NewGauge(prometheus.GaugeOpts{Name: "rest_client_transport_cache_entries", Help: "Transports in their cache."})
	c.rotations = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "rest_client_transport_cert_rotation_gc_calls_total", Help: "Watches of client certificates that ended with their transport.",
	})
	c.group = append(c.group, c.transports, c.rotations)
	return c
}

// ObserveClients returns what counts the requests of all API clients from now
// on. client-go has one observer for the process, which is the first: a program
// calls this once, before it makes a client, and hands the result to each
// Metrics that it makes.
func ObserveClients() *Clients {
	c := newClients()
	metrics.Register(metrics.RegisterOpts{
		RequestLatency:               latency{c.latency},
		RateLimiterLatency:           latency{c.limiter},
		RequestSize:                  size{c.requestSize},
		ResponseSize:                 size{c.responseSize},
		RequestResult:                result{c.requests},
		RequestRetry:                 retry{c.retries},
		TransportCacheEntries:        entries{c.transports},
		TransportCreateCalls:         calls{c.created},
		TransportCacheGCCalls:        calls{c.collected},
		TransportCAReloads:           reloads{c.authorities},
		TransportCertRotationGCCalls: rotations{c.rotations},
	})
	return c
}

// client-go's interfaces, each on the metric that answers to it.
type (
	latency   struct{ to *prometheus.HistogramVec }
	size      struct{ to *prometheus.HistogramVec }
	result    struct{ to *prometheus.CounterVec }
	retry     struct{ to *prometheus.CounterVec }
	entries   struct{ to prometheus.Gauge }
	calls     struct{ to *prometheus.CounterVec }
	reloads   struct{ to *prometheus.CounterVec }
	rotations struct{ to prometheus.Counter }
)

func (l latency) Observe(_ context.Context, verb string, u url.URL, took time.Duration) {
	l.to.WithLabelValues(verb, u.Host).Observe(took.Seconds())
}

func (s size) Observe(_ context.Context, verb, host string, bytes float64) {
	s.to.WithLabelValues(verb, host).Observe(bytes)
}

func (r result) Increment(_ context.Context, code, method, host string) {
	r.to.WithLabelValues(code, method, host).Inc()
}

func (r retry) IncrementRetry(_ context.Context, code, verb, host string) {
	r.to.WithLabelValues(code, verb, host).Inc()
}

func (e entries) Observe(n int) { e.to.Set(float64(n)) }

func (c calls) Increment(result string) { c.to.WithLabelValues(result).Inc() }

func (r reloads) Increment(result, reason string) { r.to.WithLabelValues(result, reason).Inc() }

func (r rotations) Increment() { r.to.Inc() }
