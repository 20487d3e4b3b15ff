package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

const (
	v4 = "ip_family=IPv4"
	v6 = "ip_family=IPv6"

	syncing     = "kubeproxy_sync_proxy_rules_duration_seconds"
	full        = "kubeproxy_sync_full_proxy_rules_duration_seconds"
	partial     = "kubeproxy_sync_partial_proxy_rules_duration_seconds"
	programming = "kubeproxy_network_programming_duration_seconds"
	reconciling = "kubeproxy_conntrack_reconciler_sync_duration_seconds"
	synced      = "kubeproxy_sync_proxy_rules_last_timestamp_seconds"
	syncedOld   = "kubeproxy_sync_proxy_rules_last_timestamp"
	total       = "kubeproxy_sync_proxy_rules_iptables_total"
	noLocal     = "kubeproxy_sync_proxy_rules_no_local_endpoints_total"
)

// beyond are those that kube-proxy does not have, and why nlproxy does.
var beyond = map[string]string{
	syncedOld: "the name that older dashboards and alerts know",
}

func TestMetricsAddressIsThatOfKubeProxy(t *testing.T) {
	r := newRig(t)
	theirs, ours := r.each(t, func(t *testing.T, p *proxy) {
		p.askAll(t)
		p.checkConfiguration(t)
		p.checkIndicators(t)
		r.drive(t, p)
		p.checkValues(t)
		r.checkRules(t, p)
	})
	ours.checkSynced(t, syncedOld, v4)
	ours.checkSynced(t, syncedOld, v6)
	t.Run("answers", func(t *testing.T) { compareAnswers(t, theirs, ours) })
	t.Run("series", func(t *testing.T) { compareSeries(t, theirs.seen, ours.seen) })
	t.Run("counts", func(t *testing.T) { compareCounts(t, theirs.seen, ours.seen) })
	t.Run("process", func(t *testing.T) { compareProcess(t, theirs.seen, ours.seen) })
}

func compareSeries(t *testing.T, theirs, ours scrape) {
	for _, name := range theirs.names("kubeproxy_") {
		compare(t, name, theirs, ours)
	}
	for _, name := range ours.names("kubeproxy_") {
		if theirs[name] == nil && beyond[name] == "" {
			t.Errorf("%s: kube-proxy does not have it", name)
		}
	}
}

// compareCounts compares what has to be the same for the same objects.
func compareCounts(t *testing.T, theirs, ours scrape) {
	for _, name := range []string{total, noLocal} {
		for labels := range theirs.series(name) {
			want, _ := theirs.value(name, labels)
			if got, _ := ours.value(name, labels); got != want {
				t.Errorf("%s{%s} is %v, that of kube-proxy %v", name, labels, got, want)
			}
		}
	}
}

// compare finds what ours lacks of a metric, or has otherwise.
func compare(t *testing.T, name string, theirs, ours scrape) {
	t.Helper()
	if theirs[name].GetType() != ours[name].GetType() {
		t.Errorf("%s is a %s, want a %s", name, ours[name].GetType(), theirs[name].GetType())
		return
	}
	have := ours.series(name)
	for labels, want := range theirs.series(name) {
		got, ok := have[labels]
		if !ok {
			t.Errorf("%s{%s} is missing", name, labels)
			continue
		}
		if diff := cmp.Diff(bounds(want.GetHistogram()), bounds(got.GetHistogram())); diff != "" {
			t.Errorf("%s{%s}: buckets (-want +got):\n%s", name, labels, diff)
		}
	}
}

// checkValues checks those that are known of either proxy.
func (p *proxy) checkValues(t *testing.T) {
	t.Helper()
	for family, want := range map[string]int{v4: 2, v6: 1} {
		all := count(p.seen.histogram(syncing, family))
		if parts := count(p.seen.histogram(full, family)) + count(p.seen.histogram(partial, family)); all == 0 || parts != all {
			t.Errorf("%s: %d synchronisations of %s, of them %d full or partial", p.name, all, family, parts)
		}
		p.checkProgramming(t, family, want)
		p.checkSynced(t, synced, family)
	}
	for labels, want := range map[string]float64{
		v4 + ",traffic_policy=internal": 2, v4 + ",traffic_policy=external": 2,
		v6 + ",traffic_policy=internal": 0, v6 + ",traffic_policy=external": 0,
	} {
		if got, ok := p.seen.value(noLocal, labels); got != want || !ok {
			t.Errorf("%s: %v services without local endpoints with %s, want %v", p.name, got, labels, want)
		}
	}
	for _, name := range []string{"kubeproxy_proxy_healthz_total", "kubeproxy_proxy_livez_total"} {
		if got, _ := p.seen.value(name, "code=200"); got != 1 {
			t.Errorf("%s: %s is %v after one request", p.name, name, got)
		}
	}
}

// checkProgramming checks that so many changes took longer than nothing, and
// not longer than the time since they were asked for.
func (p *proxy) checkProgramming(t *testing.T, family string, want int) {
	t.Helper()
	h, elapsed := p.seen.histogram(programming, family), p.scraped.Sub(p.changed).Seconds()
	if count(h) != want || h.GetSampleSum() <= 0 || h.GetSampleSum() > float64(want)*elapsed {
		t.Errorf("%s: %d changes of %s took %v together; want %d, each at most %v seconds",
			p.name, count(h), family, h.GetSampleSum(), want, elapsed)
	}
	for _, b := range h.GetBucket() {
		if b.GetUpperBound() >= elapsed && int(b.GetCumulativeCount()) != want {
			t.Errorf("%s: %d changes took up to %v seconds, want %d", p.name, b.GetCumulativeCount(), b.GetUpperBound(), want)
		}
	}
}

func (p *proxy) checkSynced(t *testing.T, name, family string) {
	t.Helper()
	at, _ := p.seen.value(name, family)
	if from, to := float64(p.changed.UnixMicro())/1e6, float64(p.scraped.UnixMicro())/1e6; at < from || at > to {
		t.Errorf("%s: %s{%s} is %f, want one from %f to %f", p.name, name, family, at, from, to)
	}
}

// checkRules compares what a proxy says of its rules with iptables' own tools.
func (r *rig) checkRules(t *testing.T, p *proxy) {
	t.Helper()
	for family, tool := range map[string]string{v4: "iptables-nft-save", v6: "ip6tables-nft-save"} {
		for _, table := range []string{"nat", "filter"} {
			text := labtest.Run(t, r.Self.Namespace, "", tool, "-t", table)
			want := strings.Count(text, "\n-A KUBE-")
			if got, ok := p.seen.value(total, fmt.Sprintf("%s,table=%s", family, table)); !ok || int(got) != want || want == 0 {
				t.Errorf("%s: %v rules of %s in %s, and there are %d:\n%s", p.name, got, family, table, want, text)
			}
		}
	}
}

// compareProcess compares what every component of Kubernetes tells of itself.
func compareProcess(t *testing.T, theirs, ours scrape) {
	for _, name := range []string{"kubernetes_build_info", "process_start_time_seconds", "process_resident_memory_bytes", "go_goroutines"} {
		if want, got := theirs.shape(name), ours.shape(name); want != got {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// shape is the type, the names of labels and the buckets of a metric.
func (s scrape) shape(name string) string {
	if s[name] == nil {
		return "none"
	}
	m := s[name].GetMetric()[0]
	var names []string
	for _, l := range m.GetLabel() {
		names = append(names, l.GetName())
	}
	slices.Sort(names)
	return fmt.Sprint(s[name].GetType(), names, bounds(m.GetHistogram()))
}
