package main

import (
	"errors"
	"slices"
	"testing"

	"github.com/nlproxy/nlproxy/dataplane/leftovers"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestSweepsSayEachThingOnce(t *testing.T) {
	const (
		removed = "removed leftovers of kube-proxy"
		runs    = "kube-proxy seems to run beside this program and to write its rules again: stop one of them"
		stays   = "leftovers of kube-proxy stay, since others use them"
		failed  = "leftovers of kube-proxy could not be removed; trying again"
	)
	table := leftovers.Found{Kind: "nftables table", Name: "ip kube-proxy"}
	set := leftovers.Found{Kind: "ipset", Name: "KUBE-CLUSTER-IP", Kept: errors.New("in use")}
	broken := errors.New("legacy tables: locked")
	core, logged := observer.New(zap.DebugLevel)
	s := sweeper{log: zap.New(core)}
	for i, step := range []struct {
		found []leftovers.Found
		err   error
		want  []string
	}{
		{nil, nil, nil},
		{[]leftovers.Found{table, set}, nil, []string{removed, stays}},
		{[]leftovers.Found{set}, nil, nil},
		{[]leftovers.Found{set}, broken, []string{failed}},
		{[]leftovers.Found{table}, broken, []string{removed}},
		{[]leftovers.Found{table}, nil, []string{runs}},
		{[]leftovers.Found{table, set}, nil, []string{stays}},
		{nil, broken, []string{failed}},
	} {
		s.tell(step.found, step.err)
		var got []string
		for _, e := range logged.TakeAll() {
			got = append(got, e.Message)
		}
		if !slices.Equal(got, step.want) {
			t.Errorf("sweep %d said %q, want %q", i, got, step.want)
		}
	}
}
