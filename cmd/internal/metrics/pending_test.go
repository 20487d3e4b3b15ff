package metrics

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nlproxy/nlproxy/dataplane"
)

func TestPendingIsTheAgeOfWhatIsNotWritten(t *testing.T) {
	const took = 2 * time.Second
	written := func(m *Metrics) { m.Observe(dataplane.Report{Duration: took}) }
	failed := func(m *Metrics) { m.Observe(dataplane.Report{Duration: took, Err: errors.New("no memory")}) }
	changed := func(m *Metrics) { m.Queued() }
	type step struct {
		what string
		do   func(*Metrics)
		want int // seconds, ten after do
	}
	for name, steps := range map[string][]step{
		"a change":                       {{"comes", changed, 10}, {"is written", written, 0}},
		"changes that follow each other": {{"one", changed, 10}, {"another", changed, 20}, {"are written", written, 0}},
		"a change that fails":            {{"comes", changed, 10}, {"fails", failed, 20}, {"fails again", failed, 30}, {"is written", written, 0}},
		"failure with nothing changed":   {{"fails", failed, 12}, {"fails again", failed, 22}, {"succeeds", written, 0}},
		"a failure, and then a change":   {{"fails", failed, 12}, {"comes", changed, 22}, {"is written", written, 0}},
		"nothing, and then a change":     {{"is written", written, 0}, {"comes", changed, 10}},
		"a change while others are being written": {
			{"comes, a second before their end", func(m *Metrics) { changed(m); time.Sleep(time.Second); written(m) }, 11},
			{"is written", written, 0},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := made(t, Options{})
			for _, s := range steps {
				s.do(m)
				time.Sleep(10 * time.Second)
				text, _ := scraped(t, m, "nlproxy_rules_pending_seconds")
				if want := fmt.Sprintf("nlproxy_rules_pending_seconds %d\n", s.want); !strings.HasSuffix(text, want) {
					t.Errorf("%s: %s: %q, want %q", name, s.what, text, want)
				}
			}
		})
	}
}
