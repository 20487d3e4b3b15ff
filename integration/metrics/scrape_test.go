package metrics

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// A scrape is all metrics of a proxy at one moment, by name.
type scrape map[string]*dto.MetricFamily

func parse(t *testing.T, text []byte) scrape {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	all, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// labels are those of a series, as they are written.
func labels(m *dto.Metric) string {
	var pairs []string
	for _, l := range m.GetLabel() {
		pairs = append(pairs, l.GetName()+"="+l.GetValue())
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

// series are those of a metric, by their labels.
func (s scrape) series(name string) map[string]*dto.Metric {
	all := map[string]*dto.Metric{}
	for _, m := range s[name].GetMetric() {
		all[labels(m)] = m
	}
	return all
}

// value is that of a gauge or a counter; false if there is none.
func (s scrape) value(name, labels string) (float64, bool) {
	m, ok := s.series(name)[labels]
	switch {
	case !ok:
		return 0, false
	case m.GetGauge() != nil:
		return m.GetGauge().GetValue(), true
	}
	return m.GetCounter().GetValue(), true
}

// histogram is nil if there is none.
func (s scrape) histogram(name, labels string) *dto.Histogram {
	return s.series(name)[labels].GetHistogram()
}

func count(h *dto.Histogram) int { return int(h.GetSampleCount()) }

func bounds(h *dto.Histogram) []float64 {
	var all []float64
	for _, b := range h.GetBucket() {
		all = append(all, b.GetUpperBound())
	}
	return all
}

// names are those that begin with a prefix, sorted.
func (s scrape) names(prefix string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s)), func(n string) bool { return !strings.HasPrefix(n, prefix) })
}

// A response is what a request is answered with.
type response struct {
	Status              int
	ContentType, Option string
	Body                string
}

func (p *proxy) ask(t *testing.T, method, url, body string) response {
	t.Helper()
	got, err := p.from.Request(t.Context(), method, url, body)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	return response{got.Status, got.Header.Get("Content-Type"), got.Header.Get("X-Content-Type-Options"), got.Body}
}

func (p *proxy) scrape(t *testing.T) scrape {
	t.Helper()
	got := p.ask(t, http.MethodGet, metricsAddress+"/metrics", "")
	if got.Status != http.StatusOK {
		t.Fatalf("%s: status %d: %s", p.name, got.Status, got.Body)
	}
	return parse(t, []byte(got.Body))
}
