package lifecycle

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestTheProcessIsAsTheConfigurationSays(t *testing.T) {
	r, d, _ := running(t)
	for _, tt := range []struct {
		fields, score string
		profiling     int
	}{
		{"oomScoreAdj: 7\n", "7", http.StatusNotFound},
		{"oomScoreAdj: 8\nenableProfiling: true\n", "8", http.StatusOK},
	} {
		d.Configure(t, settings()+tt.fields)
		d.Await(t, "that it starts anew", starts)
		d.Await(t, "that it serves its metrics", func(e daemon.Entry) bool {
			return e.Message == "serving" && strings.Contains(e.Line, "metricsBindAddress")
		})
		score, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", d.PID()))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(string(score)); got != tt.score {
			t.Errorf("%s: oom_score_adj is %s", tt.fields, got)
		}
		if got := labtest.Get(t, r.Self.Namespace, "http://127.0.0.1:10249/debug/pprof/goroutine?debug=1").Status; got != tt.profiling {
			t.Errorf("%s: status of a profile is %d, want %d", tt.fields, got, tt.profiling)
		}
	}
}

func starts(e daemon.Entry) bool { return e.Message == "starts" }

// Nothing changes, and yet there is a synchronisation in each period.
func TestRulesAreSynchronisedInEachSyncPeriod(t *testing.T) {
	_, d, _ := running(t)
	d.Configure(t, strings.Replace(settings(), "syncPeriod: 30s", "syncPeriod: 100ms", 1)+"logging: {verbosity: 4}\n")
	d.Await(t, "that it starts anew", starts)
	for range 20 {
		d.Synchronised(t)
	}
}
