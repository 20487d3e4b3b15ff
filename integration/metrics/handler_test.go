package metrics

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A request is one to the metrics address.
type request struct{ method, path, body string }

var requests = []request{
	{"GET", "/healthz", ""},
	{"POST", "/healthz", ""},
	{"GET", "/healthz?verbose", ""},
	{"GET", "/healthz?verbose&exclude=ping", ""},
	{"GET", "/healthz/ping", ""},
	{"GET", "/proxyMode", ""},
	{"GET", "/livez", ""},
	{"GET", "/", ""},
	{"GET", "/debug/pprof", ""},
	{"GET", "/debug/pprof/nothing", ""},
	{"GET", "/debug/flags/v", ""},
	{"PUT", "/debug/flags/v", "1"},
	{"DELETE", "/metrics/slis", ""},
}

func (p *proxy) askAll(t *testing.T) {
	t.Helper()
	for _, q := range requests {
		p.answers[q] = p.ask(t, q.method, metricsAddress+q.path, q.body)
	}
}

func compareAnswers(t *testing.T, theirs, ours *proxy) {
	for _, q := range requests {
		if diff := cmp.Diff(theirs.answers[q], ours.answers[q]); diff != "" {
			t.Errorf("%s %s (-kube-proxy +nlproxy):\n%s", q.method, q.path, diff)
		}
	}
}

// checkConfiguration checks that /configz has what was configured.
func (p *proxy) checkConfiguration(t *testing.T) {
	t.Helper()
	got := p.ask(t, http.MethodGet, metricsAddress+"/configz", "")
	var all map[string]struct {
		Kind, APIVersion, Mode, HostnameOverride string
		EnableProfiling                          bool
	}
	if err := json.Unmarshal([]byte(got.Body), &all); err != nil {
		t.Fatalf("%s: %v in %q", p.name, err, got.Body)
	}
	c, ok := all["kubeproxy.config.k8s.io"]
	if len(all) != 1 || !ok || c.Kind != "KubeProxyConfiguration" || c.APIVersion != "kubeproxy.config.k8s.io/v1alpha1" ||
		c.Mode != "iptables" || c.HostnameOverride != "node1" || !c.EnableProfiling || got.ContentType != "application/json" {
		t.Errorf("%s: %s %+v", p.name, got.ContentType, all)
	}
}

// checkIndicators checks that /metrics/slis counts requests for /healthz.
func (p *proxy) checkIndicators(t *testing.T) {
	t.Helper()
	p.ask(t, http.MethodGet, metricsAddress+"/healthz", "")
	text := p.ask(t, http.MethodGet, metricsAddress+"/metrics/slis", "").Body
	for _, want := range []string{
		"\n" + `kubernetes_healthcheck{name="ping",type="healthz"} 1` + "\n",
		"\n" + `kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 1` + "\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s: no %q in\n%s", p.name, want, text)
		}
	}
}
