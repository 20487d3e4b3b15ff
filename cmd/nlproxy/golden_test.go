package main

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/integration/cluster"
	"github.com/nlproxy/nlproxy/integration/golden"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/watch"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zaptest"
)

func TestMain(m *testing.M) { cluster.Main(m) }

// local are the addresses of the namespace that golden cases were made in.
var local = []netip.Addr{
	netip.MustParseAddr("127.0.0.1"),
	netip.MustParseAddr("192.168.7.1"),
	netip.MustParseAddr("192.168.8.1"),
	netip.MustParseAddr("::1"),
	netip.MustParseAddr("fd00:7::1"),
}

// TestRulesetEqualsKubeProxys programs the kernel for each case and has the
// iptables tools read it back. nft must be able to list it, too.
func TestRulesetEqualsKubeProxys(t *testing.T) {
	for _, c := range golden.Cases(t) {
		t.Run(c.Name, func(t *testing.T) {
			ns := golden.Namespace(t)
			program(t, ns, c)
			if diff := cmp.Diff(c.Want, golden.Read(t, ns)); diff != "" {
				t.Errorf("ruleset (-kube-proxy +ours):\n%s", diff)
			}
			labtest.Run(t, ns, "", "nft", "list", "ruleset")
		})
	}
}

// program makes the kernel serve a case's objects.
func program(t *testing.T, ns *lab.Namespace, c golden.Case) {
	t.Helper()
	conf := configOf(t, c.Config)
	snapshot := snapshotOf(t, conf, c.Objects)
	err := ns.Do(func() error {
		conn, err := kernel.Dial(kernel.Options{})
		if err != nil {
			return err
		}
		defer conn.Close()
		log := zaptest.NewLogger(t)
		limits, err := newLimits(conf, log)
		if err != nil {
			return err
		}
		d, err := newDataplane(conf, conn, limits, hooks{}, log)
		if err != nil {
			return err
		}
		return d.Set(t.Context(), snapshot)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// configOf reads a configuration file's content.
func configOf(t testing.TB, file []byte) config.Config {
	t.Helper()
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags := config.Bind(fs)
	if err := fs.Parse([]string{"--config", "config.yaml"}); err != nil {
		t.Fatal(err)
	}
	c, _, err := flags.Config(func(string) ([]byte, error) { return file, nil })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// snapshotOf reads manifests, in which there must be nothing wrong.
func snapshotOf(t testing.TB, c config.Config, objects []byte) model.Snapshot {
	t.Helper()
	o, err := sourceOptions(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, problems, err := watch.Read("objects.yaml", bytes.NewReader(objects), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Log(p)
	}
	s.Node.Local = local
	return s
}
