package health

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

const (
	syncPeriod = 30 * time.Second
	late       = 2 * syncPeriod
)

func newServer(t *testing.T, o Options) *Server {
	t.Helper()
	o.Late = late
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ask(h http.Handler, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

// expect asks for path and compares the answer; in body, NOW and EARLIER stand
// for the times.
func expect(t *testing.T, s *Server, path string, code int, body string, earlier time.Time) {
	t.Helper()
	stamp := func(at time.Time) string { return `"` + at.Format(time.RFC3339Nano) + `"` }
	body = strings.NewReplacer("NOW", stamp(time.Now()), "EARLIER", stamp(earlier), "NEVER", `"0001-01-01T00:00:00Z"`).Replace(body)
	got := ask(s.Handler(), http.MethodGet, path)
	if got.Code != code || got.Body.String() != body {
		t.Errorf("%s: %d\n%s\nwant %d\n%s", path, got.Code, got.Body, code, body)
	}
}

func TestAnswersOfANodeWhoseRulesAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Options{})
		expect(t, s, Healthz, 200, `{"lastUpdated":NOW,"currentTime":NOW,"nodeEligible":true,"healthy":true}`, time.Time{})
		start := time.Now()
		s.Synced(model.IPv6, model.IPv4)
		time.Sleep(time.Hour + 5*time.Millisecond) // nothing to be done for long is healthy
		expect(t, s, Healthz, 200, `{"lastUpdated":NOW,"currentTime":NOW,"nodeEligible":true,"healthy":true,`+
			`"status":{"IPv4":{"lastUpdated":EARLIER,"healthy":true},"IPv6":{"lastUpdated":EARLIER,"healthy":true}}}`, start)
		expect(t, s, Livez, 200, `{"lastUpdated":NOW,"currentTime":NOW,"healthy":true,`+
			`"status":{"IPv4":{"lastUpdated":EARLIER,"healthy":true},"IPv6":{"lastUpdated":EARLIER,"healthy":true}}}`, start)
	})
}

func TestANodeIsUnhealthyOnceRulesHaveWaitedForTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Options{})
		start := time.Now()
		s.Synced(model.Families[:]...)
		s.Queued(model.IPv4)
		time.Sleep(late - 1)
		s.Queued(model.IPv4) // more to do makes what waits no younger
		if !s.Healthy() {
			t.Error("unhealthy before it is late")
		}
		time.Sleep(1)
		if s.Healthy() {
			t.Error("healthy though it is late")
		}
		families := `"status":{"IPv4":{"lastUpdated":EARLIER,"healthy":false},"IPv6":{"lastUpdated":EARLIER,"healthy":true}}}`
		expect(t, s, Healthz, 503, `{"lastUpdated":EARLIER,"currentTime":NOW,"nodeEligible":true,"healthy":false,`+families, start)
		expect(t, s, Livez, 503, `{"lastUpdated":EARLIER,"currentTime":NOW,"healthy":false,`+families, start)
		s.Synced(model.IPv4)
		if !s.Healthy() {
			t.Error("unhealthy though all is written")
		}
		s.Queued(model.IPv4)
		time.Sleep(late - 1)
		if !s.Healthy() {
			t.Error("the time counts from before the last success")
		}
	})
}

// A family that was never served can wait for ever: this kernel may lack it.
func TestAFamilyThatWasNeverServedMakesNothingWorse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Options{})
		s.Synced(model.IPv4)
		s.Queued(model.IPv6)
		time.Sleep(late)
		if !s.Healthy() {
			t.Error("unhealthy for a family that is not served")
		}
	})
}

func TestANodeToBeDeletedIsLiveButMustNotHaveTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eligible := false
		s := newServer(t, Options{Eligible: func() bool { return eligible }})
		s.Synced(model.IPv4)
		families := `"status":{"IPv4":{"lastUpdated":EARLIER,"healthy":true}}}`
		start := time.Now()
		time.Sleep(time.Second)
		expect(t, s, Healthz, 503, `{"lastUpdated":EARLIER,"currentTime":NOW,"nodeEligible":false,"healthy":true,`+families, start)
		expect(t, s, Livez, 200, `{"lastUpdated":NOW,"currentTime":NOW,"healthy":true,`+families, start)
		eligible = true
		if got := ask(s.Handler(), http.MethodGet, Healthz); got.Code != 200 {
			t.Errorf("the node stays: %d", got.Code)
		}
	})
}

func TestAnswersToAnyMethodAndOnTheirPathsOnly(t *testing.T) {
	s := newServer(t, Options{})
	for path, want := range map[string]int{Healthz: 200, Livez: 200, "/": 404, "/healthz/": 404, "/metrics": 404} {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			got := ask(s.Handler(), method, path)
			if got.Code != want {
				t.Errorf("%s %s: %d, want %d", method, path, got.Code, want)
			}
			if h := got.Header(); want == 200 && (h.Get("Content-Type") != "application/json" || h.Get("X-Content-Type-Options") != "nosniff") {
				t.Errorf("%s %s: %v", method, path, h)
			}
		}
	}
}

func TestEachAnswerIsTold(t *testing.T) {
	type answer struct {
		path string
		code int
	}
	told := map[answer]int{}
	eligible := true
	s := newServer(t, Options{
		Eligible: func() bool { return eligible },
		Answered: func(path string, code int) { told[answer{path, code}]++ },
	})
	ask(s.Handler(), http.MethodGet, Healthz)
	ask(s.Handler(), http.MethodGet, Livez)
	eligible = false
	ask(s.Handler(), http.MethodGet, Healthz)
	ask(s.Handler(), http.MethodGet, "/other")
	for want, n := range map[answer]int{{Healthz, 200}: 1, {Healthz, 503}: 1, {Livez, 200}: 1} {
		if told[want] != n {
			t.Errorf("told %d times of %v, want %d", told[want], want, n)
		}
	}
	if len(told) != 3 {
		t.Errorf("told %v", told)
	}
}

func TestServerNamesTheFieldThatCannotBeUsed(t *testing.T) {
	for want, o := range map[string]Options{
		"health: Late 0s is not positive":  {},
		"health: Late -1s is not positive": {Late: -time.Second},
	} {
		if _, err := New(o); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestAFamilyThatIsNotServedWaitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Options{Late: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		s.Synced(model.IPv4, model.IPv6)
		s.Queued(model.IPv4, model.IPv6)
		time.Sleep(time.Minute)
		if s.Healthy() {
			t.Error("healthy, though nothing was written in time")
		}
		s.Synced(model.IPv4)
		s.Queued(model.IPv6)
		time.Sleep(time.Minute)
		if !s.Healthy() {
			t.Error("unhealthy for a family that is not served")
		}
	})
}
