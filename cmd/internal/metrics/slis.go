package metrics

import (
	"io"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// slis are the indicators that every component of Kubernetes keeps of its
// health checks. This one has a single check, ping, which tells that requests
// are answered, as kube-proxy on its metrics address.
type slis struct {
	registry *prometheus.Registry
	healthy  *prometheus.GaugeVec
	checks   *prometheus.CounterVec
}

func newSLIs() *slis {
	s := &slis{
		registry: prometheus.NewRegistry(),
		healthy: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kubernetes_healthcheck", Help: "1 if a health check succeeded last, 0 if it failed.",
		}, []string{"name", "type"}),
		checks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubernetes_healthchecks_total", Help: "Health checks, by what came out.",
		}, []string{"name", "type", "status"}),
	}
	s.registry.MustRegister(s.healthy, s.checks) // which fails for equal names alone
	return s
}

// handler serves the indicators, and begins anew where a request is to delete
// them.
func (s *slis) handler(scrape http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodDelete {
			scrape.ServeHTTP(w, r)
			return
		}
		s.healthy.Reset()
		s.checks.Reset()
		_, _ = io.WriteString(w, "metrics reset\n")
	}
}

// healthz answers ok, or with ?verbose how that came about; ?exclude=NAME
// leaves out a check.
func (s *slis) healthz(w http.ResponseWriter, r *http.Request) {
	line := "[+]ping ok\n"
	query := r.URL.Query()
	if slices.Contains(query["exclude"], "ping") {
		line = "[+]ping excluded: ok\n"
	} else {
		s.healthy.WithLabelValues("ping", "healthz").Set(1)
		s.checks.WithLabelValues("ping", "healthz", "success").Inc()
	}
	if _, verbose := query["verbose"]; !verbose {
		plain(w, "ok")
		return
	}
	plain(w, line+"healthz check passed\n")
}

func (s *slis) ping(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }
