package main

import (
	"testing"
	"time"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/nlproxy/nlproxy/dataplane/sysctl"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"go.uber.org/zap"
)

func TestLimitsAreThoseOfTheConfiguration(t *testing.T) {
	limits, err := newLimits(config.Config{Conntrack: config.Conntrack{
		TCPBeLiberal:          true,
		TCPEstablishedTimeout: 1001 * time.Second,
		TCPCloseWaitTimeout:   1002 * time.Second,
		UDPTimeout:            1003 * time.Second,
		UDPStreamTimeout:      1004 * time.Second,
	}}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	err = labtest.Namespace(t).Do(func() error {
		limits.Apply()
		for name, want := range map[string]string{
			"tcp_be_liberal":          "1",
			"tcp_timeout_established": "1001",
			"tcp_timeout_close_wait":  "1002",
			"udp_timeout":             "1003",
			"udp_timeout_stream":      "1004",
		} {
			if got, err := (sysctl.Tree{}).Read("net/netfilter/nf_conntrack_" + name); got != want || err != nil {
				t.Errorf("%s is %q, %v; want %s", name, got, err, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if left := limits.Unwritable(); len(left) != 0 {
		t.Errorf("not set: %v", left)
	}
}
