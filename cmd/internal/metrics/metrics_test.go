package metrics

import (
	"errors"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/nlproxy/nlproxy/conntrack"
	"github.com/nlproxy/nlproxy/dataplane"
)

// scraped is the text of the metrics whose names have a prefix, without their
// descriptions, and the status.
func scraped(t *testing.T, m *Metrics, prefix string) (text string, status int) {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	var values strings.Builder
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(strings.TrimPrefix(line, "# TYPE "), prefix) {
			values.WriteString(line)
		}
	}
	return values.String(), answer.Code
}

// ours begins the names of metrics that kube-proxy does not have.
const ours = "nlproxy_"

func made(t *testing.T, o Options) *Metrics {
	t.Helper()
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// build is the same in every binary, but for the version of Go.
var build = Build{Version: "v1.2.3", Commit: "abc", TreeState: "clean", Date: "2026-01-02T03:04:05Z", Major: "1", Minor: "37"}

var built = `# TYPE nlproxy_build_info gauge
nlproxy_build_info{commit="abc",go_version="` + runtime.Version() + `",version="v1.2.3"} 1
`

var silent = built + `# TYPE nlproxy_conntrack_flows_deleted_total counter
nlproxy_conntrack_flows_deleted_total{reason="endpoint_elsewhere"} 0
nlproxy_conntrack_flows_deleted_total{reason="endpoint_gone"} 0
nlproxy_conntrack_flows_deleted_total{reason="not_translated"} 0
nlproxy_conntrack_flows_deleted_total{reason="service_gone"} 0
# TYPE nlproxy_kernel_seconds_total counter
nlproxy_kernel_seconds_total 0
# TYPE nlproxy_operations_total counter
nlproxy_operations_total 0
# TYPE nlproxy_rules_overwritten_total counter
nlproxy_rules_overwritten_total 0
# TYPE nlproxy_rules_pending_seconds gauge
nlproxy_rules_pending_seconds 0
# TYPE nlproxy_services_aside gauge
nlproxy_services_aside 0
# TYPE nlproxy_transaction_bytes_total counter
nlproxy_transaction_bytes_total 0
# TYPE nlproxy_transactions_total counter
nlproxy_transactions_total 0
`

func TestMetricsOfNothingAreZero(t *testing.T) {
	if text, status := scraped(t, made(t, Options{Build: build}), ours); text != silent || status != 200 {
		t.Errorf("status %d (-want +got):\n%s", status, cmp.Diff(silent, text))
	}
}

func TestMetricsShowWhatTheyWereTold(t *testing.T) {
	m := made(t, Options{
		Build:              build,
		HealthPortsFailing: func() int { return 2 },
		Stats: func() (conntrack.Stats, error) {
			return conntrack.Stats{Entries: 30, Limit: 40, InsertFailed: 1, Drop: 2, EarlyDrop: 3, Invalid: 4,
				ChainTooLong: 5, ClashResolved: 6}, nil
		},
		Unwritable: func() []conntrack.Unwritable {
			return []conntrack.Unwritable{{Setting: "net/netfilter/nf_conntrack_max"}, {Setting: "net/netfilter/nf_conntrack_buckets"}}
		},
	})
	m.ObserveFlows(conntrack.Pass{Deleted: map[conntrack.Orphan]int{conntrack.EndpointGone: 7, conntrack.ServiceGone: 2}})
	m.ObserveFlows(conntrack.Pass{Deleted: map[conntrack.Orphan]int{conntrack.EndpointGone: 1}})
	m.Observe(dataplane.Report{Transactions: 1, Operations: 200, Bytes: 3000, Kernel: 1500 * time.Millisecond, Aside: make([]dataplane.Aside, 2)})
	m.Observe(dataplane.Report{Transactions: 2, Operations: 1, Bytes: 500, Overwritten: 3, Kernel: 250 * time.Millisecond, Aside: make([]dataplane.Aside, 1)})
	want := built + `# TYPE nlproxy_conntrack_chain_too_long_total counter
nlproxy_conntrack_chain_too_long_total 5
# TYPE nlproxy_conntrack_clash_resolved_total counter
nlproxy_conntrack_clash_resolved_total 6
# TYPE nlproxy_conntrack_drops_total counter
nlproxy_conntrack_drops_total 2
# TYPE nlproxy_conntrack_early_drops_total counter
nlproxy_conntrack_early_drops_total 3
# TYPE nlproxy_conntrack_entries gauge
nlproxy_conntrack_entries 30
# TYPE nlproxy_conntrack_fill_ratio gauge
nlproxy_conntrack_fill_ratio 0.75
# TYPE nlproxy_conntrack_flows_deleted_total counter
nlproxy_conntrack_flows_deleted_total{reason="endpoint_elsewhere"} 0
nlproxy_conntrack_flows_deleted_total{reason="endpoint_gone"} 8
nlproxy_conntrack_flows_deleted_total{reason="not_translated"} 0
nlproxy_conntrack_flows_deleted_total{reason="service_gone"} 2
# TYPE nlproxy_conntrack_insert_failed_total counter
nlproxy_conntrack_insert_failed_total 1
# TYPE nlproxy_conntrack_invalid_total counter
nlproxy_conntrack_invalid_total 4
# TYPE nlproxy_conntrack_limit gauge
nlproxy_conntrack_limit 40
# TYPE nlproxy_conntrack_unwritable gauge
nlproxy_conntrack_unwritable{setting="net/netfilter/nf_conntrack_buckets"} 1
nlproxy_conntrack_unwritable{setting="net/netfilter/nf_conntrack_max"} 1
# TYPE nlproxy_kernel_seconds_total counter
nlproxy_kernel_seconds_total 1.75
# TYPE nlproxy_operations_total counter
nlproxy_operations_total 201
# TYPE nlproxy_rules_overwritten_total counter
nlproxy_rules_overwritten_total 3
# TYPE nlproxy_rules_pending_seconds gauge
nlproxy_rules_pending_seconds 0
# TYPE nlproxy_service_health_port_failures gauge
nlproxy_service_health_port_failures 2
# TYPE nlproxy_services_aside gauge
nlproxy_services_aside 1
# TYPE nlproxy_transaction_bytes_total counter
nlproxy_transaction_bytes_total 3500
# TYPE nlproxy_transactions_total counter
nlproxy_transactions_total 3
`
	if text, status := scraped(t, m, ours); text != want || status != 200 {
		t.Errorf("status %d (-want +got):\n%s", status, cmp.Diff(want, text))
	}
}

func TestMetricsLeaveOutWhatCannotBeRead(t *testing.T) {
	core, logged := observer.New(zapcore.WarnLevel)
	m := made(t, Options{
		Build:  build,
		Stats:  func() (conntrack.Stats, error) { return conntrack.Stats{}, errors.New("no such table") },
		Logger: zap.New(core),
	})
	if text, status := scraped(t, m, ours); text != silent || status != 200 {
		t.Errorf("status %d (-want +got):\n%s", status, cmp.Diff(silent, text))
	}
	if all := logged.All(); len(all) != 1 || !strings.Contains(all[0].ContextMap()["reason"].(string), "no such table") {
		t.Errorf("logged %v", all)
	}
}

func TestTwoMetricsAreApart(t *testing.T) {
	one, other := made(t, Options{Build: build}), made(t, Options{Build: build})
	one.Observe(dataplane.Report{Transactions: 5})
	if text, _ := scraped(t, other, ours); text != silent {
		t.Errorf("-want +got:\n%s", cmp.Diff(silent, text))
	}
}
