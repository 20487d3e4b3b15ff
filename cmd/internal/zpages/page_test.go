package zpages

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	asStatusz = ";as=Statusz;g=config.k8s.io;v=v1beta1"
	asFlagz   = ";as=Flagz;g=config.k8s.io;v=v1beta1"
)

var status = Status{
	Started: func() (time.Time, error) {
		return time.Now().Add(-26*time.Hour - 3*time.Minute - 4*time.Second).UTC(), nil
	},
	Go:         "go1.26",
	Binary:     "v2.0.1",
	Kubernetes: "1.37",
	Paths:      []string{"/proxyMode", "/metrics/slis", "/metrics", "/healthz"},
}

var flags = map[string]string{"v": "2", "master": "", "cluster-cidr": "10.0.0.0/8"}

// ask asks as a program does, with a header Accept unless that is empty.
func ask(h http.Handler, target, accept string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestPagesAreTextForPeople(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const warning = "Warning: for people alone, and may change; programs are to accept application/json;as="
		for _, accept := range []string{"", " ", "*/*", "text/plain", "text/*", "image/png, text/plain;q=0.1", "application/json, text/plain;q=0.5"} {
			want := "\nkube-proxy statusz\n" + warning + "Statusz;v=v1beta1;g=config.k8s.io\n" + `
Started: Thu Dec 30 21:56:56 UTC 1999
Up: 26 hr 03 min 04 sec
Go version: go1.26
Binary version: v2.0.1
Emulation version: 1.37
Paths: /healthz /metrics /proxyMode
`
			checkText(t, ask(Statusz(status), "/statusz", accept), accept, want)
			want = "\nkube-proxy flagz\n" + warning + "Flagz;v=v1beta1;g=config.k8s.io\n" + "cluster-cidr: 10.0.0.0/8\nmaster: \nv: 2\n"
			checkText(t, ask(Flagz(flags), "/flagz", accept), accept, want)
		}
	})
}

func checkText(t *testing.T, w *httptest.ResponseRecorder, accept, want string) {
	t.Helper()
	if w.Code != 200 || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("Accept: %q: %d %s", accept, w.Code, w.Header())
	}
	if diff := cmp.Diff(want, w.Body.String()); diff != "" {
		t.Errorf("Accept: %q (-want +got):\n%s", accept, diff)
	}
}

func TestPagesAreObjectsForPrograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct{ target, accept, kind, want string }{
			{"/statusz", "application/json" + asStatusz, "application/json;g=config.k8s.io;v=v1beta1;as=Statusz",
				`{"kind":"Statusz","apiVersion":"config.k8s.io/v1beta1","metadata":{"name":"kube-proxy"},"startTime":"1999-12-30T21:56:56Z","uptimeSeconds":93784,` +
					`"goVersion":"go1.26","binaryVersion":"v2.0.1","emulationVersion":"1.37","paths":["/healthz","/metrics","/proxyMode"]}` + "\n"},
			{"/flagz", "text/plain;q=0.9,application/*" + asFlagz, "application/json;g=config.k8s.io;v=v1beta1;as=Flagz",
				`{"kind":"Flagz","apiVersion":"config.k8s.io/v1beta1","metadata":{"name":"kube-proxy"},"flags":{"cluster-cidr":"10.0.0.0/8","master":"","v":"2"}}` + "\n"},
			{"/flagz", "application/yaml" + asFlagz, "application/yaml;g=config.k8s.io;v=v1beta1;as=Flagz",
				"apiVersion: config.k8s.io/v1beta1\nflags:\n  cluster-cidr: 10.0.0.0/8\n  master: \"\"\n  v: \"2\"\nkind: Flagz\nmetadata:\n  name: kube-proxy\n"},
		} {
			w := ask(handlers()[tt.target], tt.target, tt.accept)
			if got := w.Header(); w.Code != 200 || got.Get("Content-Type") != tt.kind || got.Get("Warning") != "" {
				t.Errorf("Accept: %s: %d %s", tt.accept, w.Code, got)
			}
			if diff := cmp.Diff(tt.want, w.Body.String()); diff != "" {
				t.Errorf("Accept: %s (-want +got):\n%s", tt.accept, diff)
			}
		}
	})
}

func handlers() map[string]http.Handler {
	return map[string]http.Handler{"/statusz": Statusz(status), "/flagz": Flagz(flags)}
}

func TestObjectsOfDeprecatedVersionComeWithWarning(t *testing.T) {
	for path, h := range handlers() {
		kind := map[string]string{"/statusz": "Statusz", "/flagz": "Flagz"}[path]
		w := ask(h, path, "application/json;g=config.k8s.io;v=v1alpha1;as="+kind)
		if want := `299 - "v1alpha1 of ` + path + ` is deprecated: ask for v1beta1"`; w.Code != 200 || w.Header().Get("Warning") != want {
			t.Errorf("%s: %d %s, want %s", path, w.Code, w.Header(), want)
		}
		if !strings.Contains(w.Body.String(), `"apiVersion":"config.k8s.io/v1alpha1"`) {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
}

func TestPagesRefuseWhatTheyDoNotHave(t *testing.T) {
	const (
		line     = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"`
		indented = "{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {},\n"
	)
	for accept, want := range map[string]struct{ kind, start string }{
		"application/json":                                 {"application/json", line},
		"application/json;pretty=1":                        {"application/json", indented},
		"application/*":                                    {"application/json", line},
		"application/yaml":                                 {"application/yaml", "apiVersion: v1\ncode: 406\nkind: Status\n"},
		"application/json" + asFlagz:                       {"application/json", indented},
		"application/json;as=Statusz;g=config.k8s.io;v=v1": {"application/json", indented},
		"application/json" + asStatusz + ";stream=watch":   {"application/json", indented},
		"application/json" + asStatusz + ";sv=v1":          {"application/json", indented},
		"application/cbor" + asStatusz:                     {"application/json", indented},
		"text/plain" + asStatusz:                           {"application/json", indented},
		"text/html":                                        {"application/json", indented},
		"nonsense":                                         {"application/json", indented},
	} {
		w := ask(Statusz(status), "/statusz", accept)
		if w.Code != 406 || w.Header().Get("Content-Type") != want.kind || !strings.HasPrefix(w.Body.String(), want.start) {
			t.Errorf("Accept: %s: %d %s %s", accept, w.Code, w.Header(), w.Body)
		}
		if want := "application/json;as=Statusz;v=v1beta1;g=config.k8s.io"; !strings.Contains(w.Body.String(), want) {
			t.Errorf("Accept: %s: does not say that %s can be had: %s", accept, want, w.Body)
		}
	}
}

func TestJSONIsIndentedForWhoReadsIt(t *testing.T) {
	for _, tt := range []struct {
		target, accept, agent string
		want                  bool
	}{
		{"/flagz", asFlagz, "", false},
		{"/flagz", asFlagz, "Go-http-client/1.1", false},
		{"/flagz", asFlagz, "curl/8.1", true},
		{"/flagz", asFlagz, "Mozilla/5.0 (X11)", true},
		{"/flagz", asFlagz + ";pretty=1", "", true},
		{"/flagz?pretty=true", asFlagz, "", true},
		{"/flagz?pretty=false", asFlagz, "curl/8.1", false},
		{"/flagz?pretty=very", asFlagz, "curl/8.1", false},
	} {
		r := httptest.NewRequest(http.MethodGet, tt.target, nil)
		r.Header.Set("Accept", "application/json"+tt.accept)
		r.Header.Set("User-Agent", tt.agent)
		w := httptest.NewRecorder()
		Flagz(flags).ServeHTTP(w, r)
		if got := strings.Contains(w.Body.String(), "\n  \"flags\": {\n    \""); got != tt.want || w.Code != 200 {
			t.Errorf("%s, %s, %s: indented %t, want %t:\n%s", tt.target, tt.accept, tt.agent, got, tt.want, w.Body)
		}
	}
}

func TestStatusWithoutStartIsAnError(t *testing.T) {
	s := status
	s.Started = func() (time.Time, error) { return time.Time{}, errors.New("no /proc") }
	if w, want := ask(Statusz(s), "/statusz", ""), "/statusz: start of the process: no /proc\n"; w.Code != 500 || w.Body.String() != want {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A clock that was set back does not make the time since the start negative.
func TestUptimeIsNotNegative(t *testing.T) {
	s := status
	s.Started = func() (time.Time, error) { return time.Now().Add(time.Hour), nil }
	if w := ask(Statusz(s), "/statusz", ""); !strings.Contains(w.Body.String(), "\nUp: 0 hr 00 min 00 sec\n") {
		t.Error(w.Body)
	}
}
