package metrics

import (
	"errors"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// response is what a request is answered with.
type response struct {
	status     int
	kind, body string
}

func ask(m *Metrics, method, target, body string) response {
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest(method, target, strings.NewReader(body)))
	return response{answer.Code, answer.Header().Get("Content-Type"), answer.Body.String()}
}

const text = "text/plain; charset=utf-8"

// The answers are those of kube-proxy 1.37 on its metrics address.
func TestHandlerAnswersAsKubeProxy(t *testing.T) {
	var level string
	m := made(t, Options{
		Configuration: func() any {
			return map[string]string{"kind": "KubeProxyConfiguration", "mode": "iptables"}
		},
		Profiling: true,
		SetVerbosity: func(l string) error {
			if l == "loud" {
				return errors.New(`"loud" is no number`)
			}
			level = l
			return nil
		},
	})
	for _, c := range []struct {
		method, target, body string
		want                 response
	}{
		{"GET", "/proxyMode", "", response{200, text, "iptables"}},
		{"GET", "/healthz", "", response{200, text, "ok"}},
		{"GET", "/healthz?verbose", "", response{200, text, "[+]ping ok\nhealthz check passed\n"}},
		{"GET", "/healthz?verbose&exclude=ping", "", response{200, text, "[+]ping excluded: ok\nhealthz check passed\n"}},
		{"GET", "/healthz/ping", "", response{200, text, "ok"}},
		{"GET", "/configz", "", response{200, "application/json", `{"kubeproxy.config.k8s.io":{"kind":"KubeProxyConfiguration","mode":"iptables"}}`}},
		{"PUT", "/debug/flags/v", "4", response{200, "text/plain", "successfully set klog.logging.verbosity to 4\n"}},
		{"PUT", "/debug/flags/v", "loud", response{400, "text/plain", "\"loud\" is no number\n"}},
		{"GET", "/debug/flags/v", "", response{406, "text/plain", "unsupported http method\n"}},
		{"GET", "/debug/pprof", "", response{302, "text/html; charset=utf-8", "<a href=\"/debug/pprof/\">Found</a>.\n\n"}},
		{"GET", "/debug/pprof/goroutine?debug=1", "", response{200, text, ""}},
		{"GET", "/", "", response{404, text, "404 page not found\n"}},
		{"GET", "/livez", "", response{404, text, "404 page not found\n"}},
	} {
		got := ask(m, c.method, c.target, c.body)
		if strings.Contains(c.target, "goroutine") {
			got.body = "" // which is never the same
		}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(response{})); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.method, c.target, diff)
		}
	}
	if level != "4" {
		t.Errorf("verbosity %q was set, want 4", level)
	}
}

func TestHandlerProfilesOnlyWhereWanted(t *testing.T) {
	m := made(t, Options{})
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/flags", "/debug/flags/v"} {
		if got := ask(m, "GET", path, ""); got.status != 404 {
			t.Errorf("%s: status %d, want 404", path, got.status)
		}
	}
	if got, want := ask(m, "GET", "/configz", ""), "{}"; got.body != want {
		t.Errorf("no configuration is %q, want %q", got.body, want)
	}
}

func TestHandlerRefusesVerbosityThatCannotBeSet(t *testing.T) {
	got := ask(made(t, Options{Profiling: true}), "PUT", "/debug/flags/v", "4")
	if want := (response{400, "text/plain", "the verbosity cannot be changed\n"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestConfigurationThatCannotBeWrittenIsAnError(t *testing.T) {
	m := made(t, Options{Configuration: func() any { return make(chan int) }})
	if got := ask(m, "GET", "/configz", ""); got.status != 500 {
		t.Errorf("got %+v", got)
	}
}

func TestSLIsAreThoseOfTheHealthCheck(t *testing.T) {
	m := made(t, Options{})
	expect := func(what, want string) {
		t.Helper()
		var lines []string
		for line := range strings.Lines(ask(m, "GET", "/metrics/slis", "").body) {
			if !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
		if diff := cmp.Diff(want, strings.Join(lines, ""), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	expect("before", "")
	ask(m, "GET", "/healthz", "")
	ask(m, "GET", "/healthz", "")
	ask(m, "GET", "/healthz?exclude=ping", "")
	expect("after two checks", `kubernetes_healthcheck{name="ping",type="healthz"} 1
kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 2
`)
	if got := ask(m, "DELETE", "/metrics/slis", ""); got.body != "metrics reset\n" {
		t.Errorf("reset: %+v", got)
	}
	expect("after a reset", "")
}

// The paths are those that are served, and kube-proxy's /debug is in none.
func TestStatusAndFlagsAreServedWhereWanted(t *testing.T) {
	flags := map[string]string{"v": "3"}
	for _, tt := range []struct {
		options        Options
		statusz, flagz int
		line           string
	}{
		{Options{Flags: flags}, 404, 404, ""},
		{Options{Statusz: true, Profiling: true}, 200, 404, "\nPaths: /configz /healthz /metrics /proxyMode /version\n"},
		{Options{Flagz: true, Flags: flags}, 404, 200, "\nv: 3\n"},
		{Options{Statusz: true, Flagz: true, Flags: flags}, 200, 200, "\nPaths: /configz /flagz /healthz /metrics /proxyMode /version\n"},
	} {
		m := made(t, tt.options)
		status, flags := ask(m, "GET", "/statusz", ""), ask(m, "GET", "/flagz", "")
		if status.status != tt.statusz || flags.status != tt.flagz || !strings.Contains(status.body+flags.body, tt.line) {
			t.Errorf("%+v: %+v, %+v", tt.options, status, flags)
		}
	}
}

func TestStatusIsThatOfTheProcess(t *testing.T) {
	build := Build{Major: "1", Minor: "37", Version: "v2.0.1"}
	m := made(t, Options{Statusz: true, Build: build})
	got := ask(m, "GET", "/statusz", "").body
	started, err := processStart()
	if age := time.Since(started); err != nil || age < -time.Second || age > time.Hour {
		t.Errorf("this test was started %v ago: %v", age, err)
	}
	for _, want := range []string{
		"\nStarted: " + started.Format(time.UnixDate) + "\n", "\nGo version: " + runtime.Version() + "\n",
		"\nBinary version: v2.0.1\n", "\nEmulation version: 1.37\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}
