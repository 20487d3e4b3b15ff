package metrics

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/metrics"
)

func TestClientsAreCounted(t *testing.T) {
	clients := ObserveClients()
	made(t, Options{Clients: ObserveClients()}) // which come too late
	made(t, Options{Clients: clients})
	m := made(t, Options{Clients: clients}) // the next one
	ctx, host := t.Context(), "api:6443"
	metrics.RequestLatency.Observe(ctx, "GET", url.URL{Host: host, Path: "/api"}, 20*time.Millisecond)
	metrics.RateLimiterLatency.Observe(ctx, "GET", url.URL{Host: host}, 2*time.Millisecond)
	metrics.RequestSize.Observe(ctx, "GET", host, 100)
	metrics.ResponseSize.Observe(ctx, "GET", host, 300)
	metrics.RequestResult.Increment(ctx, "200", "GET", host)
	metrics.RequestRetry.IncrementRetry(ctx, "429", "GET", host)
	metrics.TransportCacheEntries.Observe(2)
	metrics.TransportCreateCalls.Increment("miss")
	metrics.TransportCAReloads.Increment("success", "rotated")
	metrics.TransportCertRotationGCCalls.Increment()
	metrics.TransportCacheGCCalls.Increment("deleted")
	text, _ := scraped(t, m, "rest_client_")
	var got []string
	for bounds, times := range map[string]int{
		"[0.005 0.025 0.1 0.25 0.5 1 2 4 8 15 30 60 +Inf]":                                       2,
		"[64 256 512 1024 4096 16384 65536 262144 1.048576e+06 4.194304e+06 1.6777216e+07 +Inf]": 2,
	} {
		if n := strings.Count(bucketed(text), bounds); n != times {
			t.Errorf("%d histograms have the buckets %s, want %d:\n%s", n, bounds, times, bucketed(text))
		}
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") && !strings.Contains(line, "_bucket{") {
			got = append(got, strings.TrimSuffix(strings.TrimPrefix(line, "rest_client_"), "\n"))
		}
	}
	want := []string{
		`rate_limiter_duration_seconds_sum{host="api:6443",verb="GET"} 0.002`,
		`rate_limiter_duration_seconds_count{host="api:6443",verb="GET"} 1`,
		`request_duration_seconds_sum{host="api:6443",verb="GET"} 0.02`,
		`request_duration_seconds_count{host="api:6443",verb="GET"} 1`,
		`request_retries_total{code="429",host="api:6443",verb="GET"} 1`,
		`request_size_bytes_sum{host="api:6443",verb="GET"} 100`,
		`request_size_bytes_count{host="api:6443",verb="GET"} 1`,
		`requests_total{code="200",host="api:6443",method="GET"} 1`,
		`response_size_bytes_sum{host="api:6443",verb="GET"} 300`,
		`response_size_bytes_count{host="api:6443",verb="GET"} 1`,
		`transport_ca_reload_total{reason="rotated",result="success"} 1`,
		`transport_cache_entries 2`,
		`transport_cache_gc_calls_total{result="deleted"} 1`,
		`transport_cert_rotation_gc_calls_total 1`,
		`transport_create_calls_total{result="miss"} 1`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// bucketed has a line for each histogram: its buckets.
func bucketed(text string) string {
	var b strings.Builder
	last := ""
	for line := range strings.Lines(text) {
		name, bound, ok := strings.Cut(line, `,le="`)
		if !ok {
			continue
		}
		bound, _, _ = strings.Cut(bound, `"`)
		switch {
		case name == last:
			b.WriteString(" " + bound)
		case last == "":
			b.WriteString("[" + bound)
		default:
			b.WriteString("]\n[" + bound)
		}
		last = name
	}
	return b.String() + "]\n"
}
