package labtest

import (
	"context"
	"sync"
	"testing"

	"github.com/nlproxy/nlproxy/integration/lab"
)

// Probes are probers of which every probe has to be answered.
type Probes []*lab.Prober

// Pass waits until n more probes of each have ended.
func (p Probes) Pass(t testing.TB, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var waiting sync.WaitGroup
	for _, one := range p {
		waiting.Go(func() {
			if err := one.Await(ctx, n); err != nil {
				t.Error(err)
			}
		})
	}
	waiting.Wait()
}

// Stop stops all, fails t unless all probes were answered, and returns how many
// there were.
func (p Probes) Stop(t testing.TB) (sent int) {
	t.Helper()
	for _, one := range p {
		report := one.Stop()
		sent += report.Sent
		if len(report.Failures) > 0 {
			t.Errorf("%d of %d probes failed, the first at %s", len(report.Failures), report.Sent, report.Failures[0])
		}
	}
	return sent
}
