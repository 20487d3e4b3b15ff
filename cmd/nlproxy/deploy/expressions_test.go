package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	commonmodel "github.com/prometheus/common/model"
	clientmetrics "k8s.io/client-go/tools/metrics"

	"github.com/nlproxy/nlproxy/cmd/internal/metrics"
	"github.com/nlproxy/nlproxy/conntrack"
	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/watch"
)

// served are the labels of all series that /metrics can show, by name.
func served(t *testing.T) map[string][]string {
	t.Helper()
	m, err := metrics.New(metrics.Options{
		Stats:                func() (conntrack.Stats, error) { return conntrack.Stats{}, nil },
		Unwritable:           func() []conntrack.Unwritable { return make([]conntrack.Unwritable, 1) },
		Changes:              func() (c watch.Changes) { return c },
		Counter:              func(string) (uint64, uint64, error) { return 0, 0, nil },
		Clients:              metrics.ObserveClients(),
		HealthPortsFailing:   func() int { return 0 },
		ConfigurationRefused: func() bool { return false },
	})
	if err != nil {
		t.Fatal(err)
	}
	everything(m)
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	return series(t, answer.Body)
}

// everything happens once, since what has not yet happened is not shown.
func everything(m *metrics.Metrics) {
	clientmetrics.RequestResult.Increment(context.Background(), "200", "GET", "host")
	families := model.Families[:]
	count := map[rules.Table]int{}
	for _, f := range families {
		count[rules.Table{Family: f, Name: "nat"}] = 1
	}
	report := dataplane.Report{Families: families, Rules: count, Written: count, Failures: 1, PartialFailures: 1,
		Err: context.Canceled}
	m.Observe(report)
	report.Err, report.Full = nil, true
	for _, f := range families {
		report.Triggers = append(report.Triggers, model.Trigger{Family: f, At: time.Now()})
	}
	m.Observe(report)
	m.ObserveFlows(conntrack.Pass{})
	m.ObserveHealth("/healthz", 200)
	m.ObserveHealth("/livez", 503)
	m.Queued()
}

func series(t *testing.T, text io.Reader) map[string][]string {
	t.Helper()
	reader := expfmt.NewTextParser(commonmodel.LegacyValidation)
	families, err := reader.TextToMetricFamilies(text)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for name, family := range families {
		var names []string
		for _, pair := range family.Metric[0].Label {
			names = append(names, pair.GetName())
		}
		all[name] = names
		if family.Metric[0].Histogram != nil {
			delete(all, name)
			all[name+"_bucket"] = append(slices.Clone(names), "le")
			all[name+"_count"], all[name+"_sum"] = names, names
		}
	}
	return all
}

// scraped are labels that Prometheus adds.
var scraped = []string{"instance", "job"}

// parsed is what Prometheus says of an expression.
type parsed struct {
	Wrong     string
	Selectors []struct {
		Name   string
		Labels []string
	}
}

// parse has Prometheus' own parser read expressions.
func parse(t *testing.T, expressions []string) (all []parsed) {
	t.Helper()
	text, err := json.Marshal(expressions)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", ".")
	cmd.Dir = "../../../integration/promql"
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	cmd.Stdin = bytes.NewReader(text)
	out, err := cmd.Output()
	if err != nil {
		labtest.Missing(t, "the parser of Prometheus: %s: %v", cmd, err)
	}
	if err := json.Unmarshal(out, &all); err != nil || len(all) != len(expressions) {
		t.Fatalf("%d expressions of %d, %v", len(all), len(expressions), err)
	}
	return all
}

func TestDashboardAndAlertsUseWhatIsServed(t *testing.T) {
	have := served(t)
	expressions := append(dashboardExpressions(t), alertExpressions(t)...)
	if len(expressions) < 30 {
		t.Fatalf("only %d expressions", len(expressions))
	}
	for i, p := range parse(t, expressions) {
		for _, wrong := range notServed(have, p) {
			t.Errorf("%s: %s", expressions[i], wrong)
		}
	}
}

// notServed says what is wrong with an expression, and which metric or label of
// it is not served.
func notServed(have map[string][]string, p parsed) (wrong []string) {
	if p.Wrong != "" {
		return []string{p.Wrong}
	}
	for _, s := range p.Selectors {
		names, ok := have[s.Name]
		if !ok {
			wrong = append(wrong, "there is no metric "+s.Name)
			continue
		}
		for _, label := range s.Labels {
			if !slices.Contains(names, label) && !slices.Contains(scraped, label) {
				wrong = append(wrong, s.Name+" has no label "+label)
			}
		}
	}
	return wrong
}

func TestExpressionsOfWhatIsNotServedAreFound(t *testing.T) {
	have := map[string][]string{"a_total": {"code"}}
	for text, want := range map[string]string{
		"sum(rate(a_total{code=\"503\", instance=~\".*\"}[5m])) > 0": "",
		"sum(a_total": "1:12: parse error: unclosed left parenthesis",
		"b_total":     "there is no metric b_total",
		"a_total + on() a_total{family=\"IPv4\"}": "a_total has no label family",
	} {
		if got := strings.Join(notServed(have, parse(t, []string{text})[0]), "; "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// dashboardExpressions have values where Grafana puts some in.
func dashboardExpressions(t *testing.T) (all []string) {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(Dashboard), &dashboard); err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range dashboard.Panels {
		if p.Title == "" || seen[p.ID] {
			t.Errorf("panel %d %q: no title, or an id of another one", p.ID, p.Title)
		}
		seen[p.ID] = true
		for _, target := range p.Targets {
			all = append(all, strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*").Replace(target.Expr))
		}
	}
	return all
}

type rule struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

type groups struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

func alertRules(t *testing.T) (all []rule) {
	t.Helper()
	var file groups
	decode(t, Alerts, &file)
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

func alertExpressions(t *testing.T) (all []string) {
	t.Helper()
	for _, r := range alertRules(t) {
		all = append(all, r.Expr)
	}
	return all
}

func TestAlertsSayWhatAndHowBad(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range alertRules(t) {
		if _, err := commonmodel.ParseDuration(r.For); err != nil {
			t.Errorf("%s: for %q: %v", r.Alert, r.For, err)
		}
		if seen[r.Alert] || !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) ||
			r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("not whole: %+v", r)
		}
		seen[r.Alert] = true
	}
}

func TestPrometheusRuleHasTheSameRules(t *testing.T) {
	var object struct {
		APIVersion, Kind string
		Metadata         map[string]any
		Spec             groups
	}
	decode(t, PrometheusRule(), &object)
	var got []string
	for _, r := range object.Spec.Groups[0].Rules {
		got = append(got, r.Expr)
	}
	if object.Kind != "PrometheusRule" || !slices.Equal(got, alertExpressions(t)) {
		t.Errorf("%s with %q", object.Kind, got)
	}
}
