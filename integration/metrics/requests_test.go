package metrics

import (
	"strings"
	"testing"
)

// unasked are about requests that are no watches. Lists are streamed as watches,
// and there need not be another request.
var unasked = map[string]bool{
	"rest_client_rate_limiter_duration_seconds": true,
	"rest_client_request_duration_seconds":      true,
	"rest_client_request_size_bytes":            true,
	"rest_client_response_size_bytes":           true,
}

// Requests to the API server are counted as by every component of Kubernetes.
func TestMetricsOfRequestsAreThoseOfKubeProxy(t *testing.T) {
	r := newRig(t)
	theirs, ours := r.each(t, func(t *testing.T, p *proxy) { p.seen = p.scrape(t) })
	for _, name := range theirs.seen.names("rest_client_") {
		if unasked[name] && ours.seen[name] == nil || strings.HasPrefix(name, "rest_client_exec_plugin_") {
			continue // no program is run
		}
		if want, got := theirs.seen.shape(name), ours.seen.shape(name); want != got {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
