package dataplane

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestIntruderIsWarnedOfAtOnceAndThenEveryTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logged := observer.New(zap.WarnLevel)
		i := intruder{log: zap.New(core)}
		expect := func(what string, want ...int64) {
			t.Helper()
			var got []int64
			for _, e := range logged.TakeAll() {
				got = append(got, e.ContextMap()["times"].(int64))
			}
			if len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
				t.Errorf("%s: warned of %v, want %v", what, got, want)
			}
		}
		i.noticed()
		expect("the first time", 1)
		for range 9 {
			time.Sleep(time.Minute)
			i.noticed()
		}
		expect("within ten minutes")
		time.Sleep(time.Minute)
		i.noticed()
		expect("after them", 10)
		time.Sleep(time.Hour)
		i.noticed()
		expect("an hour later", 1)
	})
}
