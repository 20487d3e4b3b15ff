package conntrack

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMaxCombinesPerCoreAndMin(t *testing.T) {
	for name, tc := range map[string]struct {
		perCore, min, cores int
		want                int
		set                 bool
	}{
		"min is more":               {65535, 655350, 8, 655350, true},
		"as many":                   {65535, 655350, 10, 655350, true},
		"cores are more":            {65535, 655350, 32, 2097120, true},
		"no min":                    {65535, 0, 2, 131070, true},
		"nothing per core":          {0, 655350, 32, 0, false},
		"nothing at all":            {0, 0, 32, 0, false},
		"as many as the kernel can": {math.MaxInt32, 0, 1, math.MaxInt32, true},
		"more than the kernel can":  {math.MaxInt32, 0, 8192, math.MaxInt32, true},
		"just more":                 {math.MaxInt32/2 + 1, 0, 2, math.MaxInt32, true},
	} {
		l := Limits{MaxPerCore: tc.perCore, Min: tc.min}
		if got, set := l.Max(tc.cores); got != tc.want || set != tc.set {
			t.Errorf("%s: %d, %t; want %d, %t", name, got, set, tc.want, tc.set)
		}
	}
}

func TestSettingsOfLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		limits Limits
		want   map[string]int64
	}{
		"none":              {Limits{}, map[string]int64{}},
		"min alone":         {Limits{Min: 4096}, map[string]int64{}},
		"hash table":        {Limits{MaxPerCore: 4096, Min: 1}, map[string]int64{tableMax: 8192, buckets: 2048}},
		"too small to hash": {Limits{MaxPerCore: 1}, map[string]int64{tableMax: 2}},
		"liberal":           {Limits{TCPBeLiberal: true}, map[string]int64{tcpBeLiberal: 1}},
		"whole seconds": {
			Limits{TCPEstablishedTimeout: 24 * time.Hour, TCPCloseWaitTimeout: time.Hour},
			map[string]int64{tcpEstablishedTimeout: 86400, tcpCloseWaitTimeout: 3600},
		},
		"parts of seconds": {
			Limits{TCPEstablishedTimeout: time.Second + 1, TCPCloseWaitTimeout: 1, UDPTimeout: 1500 * time.Millisecond, UDPStreamTimeout: 2*time.Second - 1},
			map[string]int64{tcpEstablishedTimeout: 2, tcpCloseWaitTimeout: 1, udpTimeout: 2, udpStreamTimeout: 2},
		},
		"longest": {Limits{UDPTimeout: math.MaxInt64}, map[string]int64{udpTimeout: 9223372037}},
	} {
		got := make(map[string]int64)
		for _, s := range tc.limits.settings(2) {
			got[s.name] = s.want
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func TestOnlyLimitsAreAtLeast(t *testing.T) {
	all := Limits{MaxPerCore: 8, TCPBeLiberal: true, TCPEstablishedTimeout: 1, TCPCloseWaitTimeout: 1, UDPTimeout: 1, UDPStreamTimeout: 1}
	for _, s := range all.settings(1) {
		want := s.name == tableMax || s.name == buckets
		for _, value := range []string{"9", "0"} {
			if s.holds(value) != want {
				t.Errorf("%s: %d is wanted, and %s is as good: %t", s.name, s.want, value, !want)
			}
		}
	}
}

func TestNegativeLimitsAreNamed(t *testing.T) {
	if err := (Limits{}).Validate(); err != nil {
		t.Errorf("zero: %v", err)
	}
	for field, l := range map[string]Limits{
		"MaxPerCore":            {MaxPerCore: -1},
		"Min":                   {Min: -1},
		"TCPEstablishedTimeout": {TCPEstablishedTimeout: -1},
		"TCPCloseWaitTimeout":   {TCPCloseWaitTimeout: -1},
		"UDPTimeout":            {UDPTimeout: -1},
		"UDPStreamTimeout":      {UDPStreamTimeout: -1},
	} {
		for _, err := range []error{l.Validate(), newError(ApplierOptions{Limits: l})} {
			if err == nil || !strings.Contains(err.Error(), ": "+field+": ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: error %v", field, err)
			}
		}
	}
}

func newError(o ApplierOptions) error {
	_, err := NewApplier(o)
	return err
}
