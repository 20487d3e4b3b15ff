package metrics

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

	"github.com/nlproxy/nlproxy/cmd/internal/zpages"
)

// configGroup is the API group that kube-proxy's /configz shows its
// configuration under.
const configGroup = "kubeproxy.config.k8s.io"

// Handler answers what kube-proxy does on its metrics address: /metrics,
// /metrics/slis, /healthz, /proxyMode and /configz, and /statusz, /flagz and
// /debug where they are wanted; and /version. What cannot be read for a scrape is
// left out of it and logged.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	for path, handler := range m.pages() {
		mux.Handle(path, handler)
	}
	if m.opts.Profiling {
		m.debug(mux)
	}
	return mux
}

// pages are what /statusz lists, by their paths, and /statusz.
func (m *Metrics) pages() map[string]http.Handler {
	all := map[string]http.Handler{
		"/metrics":      m.scrape(m.registry),
		"/metrics/slis": m.slis.handler(m.scrape(m.slis.registry)),
		"/healthz":      http.HandlerFunc(m.slis.healthz),
		"/healthz/ping": http.HandlerFunc(m.slis.ping),
		"/proxyMode":    http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { plain(w, m.opts.Mode) }),
		"/configz":      http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { object(w, m.configuration()) }),
		"/version":      http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { object(w, m.opts.Build) }),
	}
	if m.opts.Flagz {
		all["/flagz"] = zpages.Flagz(m.opts.Flags)
	}
	if m.opts.Statusz {
		all["/statusz"] = zpages.Statusz(m.opts.Build.status(slices.Collect(maps.Keys(all))))
	}
	return all
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
