package main

import (
	"math"
	"testing"
	"time"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
)

func TestNoSyncPeriodIsTooLongForTheHealthServer(t *testing.T) {
	for _, period := range []time.Duration{1, time.Hour, math.MaxInt64} {
		p := proxy{config: config.Config{SyncPeriod: period}}
		if _, err := p.newHealth(); err != nil {
			t.Errorf("%v: %v", period, err)
		}
	}
}
