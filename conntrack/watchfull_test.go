package conntrack

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// watched runs WatchFull over these answers, one each minute, and returns when
// it reported, in minutes, and what it logged. A negative answer is an error.
func watched(t *testing.T, answers ...int) (reports []int, warnings []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		core, logged := observer.New(zapcore.WarnLevel)
		ctx, stop := context.WithCancel(t.Context())
		reads := 0
		o := WatchFullOptions{
			Interval: time.Minute,
			Logger:   zap.New(core),
			OnFull:   func(Stats) { reports = append(reports, reads-1) },
			Read: func() (Stats, error) {
				answer := answers[reads]
				if reads++; reads == len(answers) {
					stop()
				}
				if answer < 0 {
					return Stats{}, errors.New("no")
				}
				return Stats{Entries: uint32(answer), Limit: 1000}, nil
			},
		}
		start := time.Now()
		if err := WatchFull(ctx, o); err != nil {
			t.Error(err)
		}
		if took, want := time.Since(start), time.Duration(len(answers)-1)*time.Minute; took != want {
			t.Errorf("%d reads took %v, want %v", reads, took, want)
		}
		for _, entry := range logged.All() {
			warnings = append(warnings, entry.Message)
		}
	})
	return reports, warnings
}

func TestAFullTableIsReportedOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		answers, want []int
	}{
		"never full":                 {[]int{0, 500, 899, 900}, nil},
		"over nine tenths":           {[]int{900, 901, 950, 1000, 1001}, []int{1}},
		"full at the start":          {[]int{1000, 1000}, []int{0}},
		"about nine tenths":          {[]int{901, 899, 901, 850, 901}, []int{0}},
		"again after it was calm":    {[]int{901, 849, 860, 901, 902}, []int{0, 3}},
		"an error changes no memory": {[]int{901, -1, 901, -1, 849, -1, 901}, []int{0, 6}},
	} {
		if reports, _ := watched(t, tc.answers...); !slices.Equal(reports, tc.want) {
			t.Errorf("%s: reports at %v, want %v", name, reports, tc.want)
		}
	}
}

func TestAFullTableAndTheFirstFailureAreLogged(t *testing.T) {
	const full = "the table of connection tracking is nearly full; new connections fail once it is"
	const failed = "the state of connection tracking cannot be read"
	_, warnings := watched(t, -1, -1, 950, -1, 950)
	if want := []string{failed, full, failed}; !slices.Equal(warnings, want) {
		t.Errorf("logged %q, want %q", warnings, want)
	}
}

func TestWatchFullNamesTheFieldThatCannotBeUsed(t *testing.T) {
	for want, o := range map[string]WatchFullOptions{
		"conntrack: Read is missing":          {},
		"conntrack: Interval -1s is negative": {Read: ReadStats, Interval: -time.Second},
	} {
		if err := WatchFull(t.Context(), o); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
