package metrics

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
)

// configGroup is the API group that kube-proxy's /configz shows its
// configuration under.
const configGroup = "kubeproxy.config.k8s.io"

// Handler answers what kube-proxy does on its metrics address: /metrics,
// /metrics/slis, /healthz, /proxyMode and /configz, and /debug where that is
// wanted; and /version. What cannot be read for a scrape is left out of it and
// logged.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", m.scrape(m.registry))
	mux.HandleFunc("/metrics/slis", m.slis.handler(m.scrape(m.slis.registry)))
	mux.HandleFunc("/healthz", m.slis.healthz)
	mux.HandleFunc("/healthz/ping", m.slis.ping)
	mux.HandleFunc("/proxyMode", func(w http.ResponseWriter, _ *http.Request) { plain(w, m.opts.Mode) })
	mux.HandleFunc("/configz", func(w http.ResponseWriter, _ *http.Request) { object(w, m.configuration()) })
	mux.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) { object(w, m.opts.Build) })
	if m.opts.Profiling {
		m.debug(mux)
	}
	return mux
}

func (m *Metrics) scrape(g prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(g, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError,
		ErrorLog:      printer{m.log},
	})
}

// printer hands what promhttp has to say to a zap.Logger.
type printer struct{ log *zap.Logger }

func (p printer) Println(v ...any) {
	p.log.Warn("metrics are not complete", zap.Any("reason", v[len(v)-1]))
}

func (m *Metrics) configuration() map[string]any {
	all := map[string]any{}
	if m.opts.Configuration != nil {
		all[configGroup] = m.opts.Configuration()
	}
	return all
}

// plain answers with a text. What cannot be written has nobody to read it.
func plain(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = io.WriteString(w, text)
}

// object answers with a value as JSON.
func object(w http.ResponseWriter, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(text)
}
