package main

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

func TestNoSyncPeriodIsTooLongForTheHealthServer(t *testing.T) {
	for _, period := range []time.Duration{1, time.Hour, math.MaxInt64} {
		p := proxy{config: config.Config{SyncPeriod: period}}
		if _, err := p.newHealth(); err != nil {
			t.Errorf("%v: %v", period, err)
		}
	}
}

func TestNodeIsUnhealthyAfterTwoSyncPeriods(t *testing.T) {
	for _, period := range []time.Duration{time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			p := proxy{config: config.Config{SyncPeriod: period}}
			h, err := p.newHealth()
			if err != nil {
				t.Fatal(err)
			}
			h.Synced(model.IPv4)
			h.Queued(model.IPv4)
			if time.Sleep(2*period - 1); !h.Healthy() {
				t.Errorf("unhealthy before two periods of %v are over", period)
			}
			if time.Sleep(1); h.Healthy() {
				t.Errorf("healthy after two periods of %v", period)
			}
		})
	}
}
