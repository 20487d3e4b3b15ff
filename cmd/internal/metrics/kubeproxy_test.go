package metrics

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nlproxy/nlproxy/conntrack"
	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/nlproxy/nlproxy/watch"
)

// values are the samples of kube-proxy's metrics; of a histogram's buckets only
// those that hold more than the one before.
func values(t *testing.T, m *Metrics) string {
	t.Helper()
	text, _ := scraped(t, m, "kubeproxy_")
	var kept strings.Builder
	histogram, held := "", ""
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if name, bound, bucket := strings.Cut(line, `,le="`); bucket {
			_, count, _ := strings.Cut(bound, " ")
			if name != histogram {
				histogram, held = name, "0\n"
			}
			if count == held {
				continue
			}
			held = count
		}
		kept.WriteString(line)
	}
	return kept.String()
}

func tables(nat4, filter4, nat6, filter6 int) map[rules.Table]int {
	return map[rules.Table]int{
		{Family: model.IPv4, Name: "nat"}: nat4, {Family: model.IPv4, Name: "filter"}: filter4,
		{Family: model.IPv6, Name: "nat"}: nat6, {Family: model.IPv6, Name: "filter"}: filter6,
		{Family: model.IPv4, Name: "mangle"}: 0,
	}
}

func TestKubeProxysMetrics(t *testing.T) {
	report := func(edit func(*dataplane.Report)) func(*Metrics) {
		return func(m *Metrics) {
			r := dataplane.Report{
				Families: model.Families[:], Duration: 3 * time.Millisecond,
				Rules: tables(10, 5, 8, 3), Written: tables(2, 0, 1, 0),
			}
			edit(&r)
			m.Observe(r)
		}
	}
	onlyIPv4 := func(r *dataplane.Report) { r.Families = []model.Family{model.IPv4} }
	for name, c := range map[string]struct {
		options Options
		told    func(*Metrics)
		want    string
	}{
		"nothing": {told: func(*Metrics) {}},
		"a full synchronisation of both families": {
			told: report(func(r *dataplane.Report) {
				r.Full, r.NoLocal = true, map[model.Family]dataplane.NoLocal{model.IPv4: {Internal: 1, External: 2}}
			}),
			want: `kubeproxy_sync_full_proxy_rules_duration_seconds_bucket{ip_family="IPv4",le="0.004"} 1
kubeproxy_sync_full_proxy_rules_duration_seconds_sum{ip_family="IPv4"} 0.003
kubeproxy_sync_full_proxy_rules_duration_seconds_count{ip_family="IPv4"} 1
kubeproxy_sync_full_proxy_rules_duration_seconds_bucket{ip_family="IPv6",le="0.004"} 1
kubeproxy_sync_full_proxy_rules_duration_seconds_sum{ip_family="IPv6"} 0.003
kubeproxy_sync_full_proxy_rules_duration_seconds_count{ip_family="IPv6"} 1
kubeproxy_sync_proxy_rules_duration_seconds_bucket{ip_family="IPv4",le="0.004"} 1
kubeproxy_sync_proxy_rules_duration_seconds_sum{ip_family="IPv4"} 0.003
kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv4"} 1
kubeproxy_sync_proxy_rules_duration_seconds_bucket{ip_family="IPv6",le="0.004"} 1
kubeproxy_sync_proxy_rules_duration_seconds_sum{ip_family="IPv6"} 0.003
kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv6"} 1
kubeproxy_sync_proxy_rules_iptables_last{ip_family="IPv4",table="filter"} 0
kubeproxy_sync_proxy_rules_iptables_last{ip_family="IPv4",table="nat"} 2
kubeproxy_sync_proxy_rules_iptables_last{ip_family="IPv6",table="filter"} 0
kubeproxy_sync_proxy_rules_iptables_last{ip_family="IPv6",table="nat"} 1
kubeproxy_sync_proxy_rules_iptables_total{ip_family="IPv4",table="filter"} 5
kubeproxy_sync_proxy_rules_iptables_total{ip_family="IPv4",table="nat"} 10
kubeproxy_sync_proxy_rules_iptables_total{ip_family="IPv6",table="filter"} 3
kubeproxy_sync_proxy_rules_iptables_total{ip_family="IPv6",table="nat"} 8
kubeproxy_sync_proxy_rules_last_timestamp{ip_family="IPv4"} 9.466848e+08
kubeproxy_sync_proxy_rules_last_timestamp{ip_family="IPv6"} 9.466848e+08
kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} 9.466848e+08
kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv6"} 9.466848e+08
kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="external"} 2
kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="internal"} 1
kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv6",traffic_policy="external"} 0
kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv6",traffic_policy="internal"} 0
`,
		},
		"a change that failed": {
			told: report(func(r *dataplane.Report) {
				onlyIPv4(r)
				r.Err, r.Failures, r.PartialFailures, r.Rules = errors.New("no memory"), 2, 1, nil
				r.Triggers = []model.Trigger{{Family: model.IPv4, At: time.Now()}}
			}),
			want: `kubeproxy_sync_partial_proxy_rules_duration_seconds_bucket{ip_family="IPv4",le="0.004"} 1
kubeproxy_sync_partial_proxy_rules_duration_seconds_sum{ip_family="IPv4"} 0.003
kubeproxy_sync_partial_proxy_rules_duration_seconds_count{ip_family="IPv4"} 1
kubeproxy_sync_proxy_rules_duration_seconds_bucket{ip_family="IPv4",le="0.004"} 1
kubeproxy_sync_proxy_rules_duration_seconds_sum{ip_family="IPv4"} 0.003
kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv4"} 1
kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total{ip_family="IPv4"} 1
kubeproxy_sync_proxy_rules_iptables_restore_failures_total{ip_family="IPv4"} 2
`,
		},
		"a change with triggers, of one family that is served": {
			told: report(func(r *dataplane.Report) {
				onlyIPv4(r)
				r.Rules = nil
				r.Triggers = []model.Trigger{
					{Family: model.IPv4, At: time.Now().Add(-300 * time.Millisecond)},
					{Family: model.IPv4, At: time.Now().Add(-62 * time.Second)},
					{Family: model.IPv6, At: time.Now()},
				}
			}),
			want: `kubeproxy_network_programming_duration_seconds_bucket{ip_family="IPv4",le="0.5"} 1
kubeproxy_network_programming_duration_seconds_bucket{ip_family="IPv4",le="65"} 2
kubeproxy_network_programming_duration_seconds_sum{ip_family="IPv4"} 62.3
kubeproxy_network_programming_duration_seconds_count{ip_family="IPv4"} 2
kubeproxy_sync_partial_proxy_rules_duration_seconds_bucket{ip_family="IPv4",le="0.004"} 1
kubeproxy_sync_partial_proxy_rules_duration_seconds_sum{ip_family="IPv4"} 0.003
kubeproxy_sync_partial_proxy_rules_duration_seconds_count{ip_family="IPv4"} 1
kubeproxy_sync_proxy_rules_duration_seconds_bucket{ip_family="IPv4",le="0.004"} 1
kubeproxy_sync_proxy_rules_duration_seconds_sum{ip_family="IPv4"} 0.003
kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv4"} 1
kubeproxy_sync_proxy_rules_last_timestamp{ip_family="IPv4"} 9.466848e+08
kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} 9.466848e+08
kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="external"} 0
kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="internal"} 0
`,
		},
		"answers, and a sync asked for": {
			told: func(m *Metrics) {
				m.ObserveHealth("/healthz", 200)
				m.ObserveHealth("/healthz", 200)
				m.ObserveHealth("/healthz", 503)
				m.ObserveHealth("/livez", 200)
				m.Queued(model.IPv6)
			},
			want: `kubeproxy_proxy_healthz_total{code="200"} 2
kubeproxy_proxy_healthz_total{code="503"} 1
kubeproxy_proxy_livez_total{code="200"} 1
kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv6"} 9.466848e+08
`,
		},
		"a sync asked for before and after a family turned out not to be served": {
			told: func(m *Metrics) {
				m.Queued()
				m.Observe(dataplane.Report{Families: []model.Family{model.IPv4}, Err: errors.New("no memory")})
				m.Queued()
			},
			want: `kubeproxy_sync_partial_proxy_rules_duration_seconds_bucket{ip_family="IPv4",le="0.001"} 1
kubeproxy_sync_partial_proxy_rules_duration_seconds_sum{ip_family="IPv4"} 0
kubeproxy_sync_partial_proxy_rules_duration_seconds_count{ip_family="IPv4"} 1
kubeproxy_sync_proxy_rules_duration_seconds_bucket{ip_family="IPv4",le="0.001"} 1
kubeproxy_sync_proxy_rules_duration_seconds_sum{ip_family="IPv4"} 0
kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv4"} 1
kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv4"} 9.466848e+08
`,
		},
		"flows": {
			told: func(m *Metrics) {
				m.ObserveFlows(conntrack.Pass{Duration: time.Second, ByFamily: map[model.Family]int{model.IPv6: 3}})
			},
			want: `kubeproxy_conntrack_reconciler_deleted_entries_total{ip_family="IPv4"} 0
kubeproxy_conntrack_reconciler_deleted_entries_total{ip_family="IPv6"} 3
kubeproxy_conntrack_reconciler_sync_duration_seconds_bucket{ip_family="IPv4",le="1.024"} 1
kubeproxy_conntrack_reconciler_sync_duration_seconds_sum{ip_family="IPv4"} 1
kubeproxy_conntrack_reconciler_sync_duration_seconds_count{ip_family="IPv4"} 1
kubeproxy_conntrack_reconciler_sync_duration_seconds_bucket{ip_family="IPv6",le="1.024"} 1
kubeproxy_conntrack_reconciler_sync_duration_seconds_sum{ip_family="IPv6"} 1
kubeproxy_conntrack_reconciler_sync_duration_seconds_count{ip_family="IPv6"} 1
`,
		},
		"what was watched and what the kernel counted": {
			options: Options{
				Changes: func() watch.Changes {
					return watch.Changes{Services: 5, ServicesPending: 1, Endpoints: 7, EndpointsPending: 2}
				},
				Counter: func(name string) (uint64, uint64, error) {
					if name == "localhost_nps_accepted_pkts" {
						return 0, 0, fs.ErrNotExist
					}
					return 42, 4200, nil
				},
			},
			told: func(*Metrics) {},
			want: `kubeproxy_iptables_ct_state_invalid_dropped_packets_total 42
kubeproxy_sync_proxy_rules_endpoint_changes_pending 2
kubeproxy_sync_proxy_rules_endpoint_changes_total 7
kubeproxy_sync_proxy_rules_service_changes_pending 1
kubeproxy_sync_proxy_rules_service_changes_total 5
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := made(t, c.options)
				c.told(m)
				if diff := cmp.Diff(c.want, values(t, m)); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}
