package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/sysctl"
)

func prefixes(list ...string) (all []netip.Prefix) {
	for _, s := range list {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

func addrs(list ...string) (all []netip.Addr) {
	for _, s := range list {
		all = append(all, netip.MustParseAddr(s))
	}
	return all
}

func TestWhatDoesNotFitANode(t *testing.T) {
	const (
		everywhere = "nodePortAddresses (--nodeport-addresses): selects no address"
		all4, all6 = "all IPv4 addresses", "all IPv6 addresses"
		cluster    = "clusterCIDR (--cluster-cidr): "
		pods       = "spec.podCIDRs of this node: "
	)
	byCluster := func(ranges ...string) config.DetectLocal {
		return config.DetectLocal{Mode: config.DetectLocalByClusterCIDR, ClusterCIDRs: prefixes(ranges...)}
	}
	byNode := config.DetectLocal{Mode: config.DetectLocalByNodeCIDR}
	ports := func(ranges ...string) config.NodePortAddresses {
		return config.NodePortAddresses{Prefixes: prefixes(ranges...)}
	}
	primary := config.NodePortAddresses{Primary: true}
	four, six := model.Node{Addresses: addrs("192.0.2.1")}, model.Node{Addresses: addrs("2001:db8::1")}
	ranged := func(n model.Node, ranges ...string) model.Node { n.PodCIDRs = prefixes(ranges...); return n }
	server := netip.MustParseAddrPort

	for name, test := range map[string]struct {
		config   config.Config
		node     model.Node
		ipv6Off  bool
		warnings []string // how each begins, or what is in it
		fatal    string
	}{
		"no node-port addresses":                  {config.Config{}, four, false, nil, ""},
		"no node-port address of a node's own":    {config.Config{NodePortAddresses: primary}, model.Node{}, false, []string{everywhere}, ""},
		"no node-port address but loopback":       {config.Config{NodePortAddresses: primary, BindAddress: netip.MustParseAddr("127.0.0.1")}, four, false, []string{everywhere}, ""},
		"the node's own":                          {config.Config{NodePortAddresses: primary}, four, false, nil, ""},
		"the node's own, of both families":        {config.Config{NodePortAddresses: primary, DetectLocal: byCluster("10.0.0.0/8", "fd00::/8")}, model.Node{Addresses: addrs("192.0.2.1", "2001:db8::1")}, false, nil, ""},
		"the node's own, in a dual cluster":       {config.Config{NodePortAddresses: primary, DetectLocal: byCluster("10.0.0.0/8", "fd00::/8")}, four, false, []string{all6}, ""},
		"one family's, pods of both":              {config.Config{NodePortAddresses: ports("2001:db8::/32")}, ranged(six, "fd00::/64", "10.0.0.0/24"), false, []string{all4}, ""},
		"the other family's":                      {config.Config{NodePortAddresses: ports("2001:db8::/32")}, four, false, []string{all4}, ""},
		"the other family's, by the bind address": {config.Config{NodePortAddresses: ports("192.0.2.0/24"), BindAddress: netip.MustParseAddr("2001:db8::1")}, four, false, []string{all6}, ""},
		"both families'":                          {config.Config{NodePortAddresses: ports("192.0.2.0/24", "2001:db8::/32")}, four, false, nil, ""},

		"cluster ranges of the other family":                       {config.Config{NodePortAddresses: primary, DetectLocal: byCluster("fd00::/8")}, four, false, []string{cluster}, ""},
		"cluster ranges of the other family, which the host lacks": {config.Config{NodePortAddresses: primary, DetectLocal: byCluster("fd00::/8")}, four, true, nil, cluster},
		"cluster ranges of both families":                          {config.Config{NodePortAddresses: ports("192.0.2.0/24", "2001:db8::/32"), DetectLocal: byCluster("fd00::/8", "10.0.0.0/8")}, four, true, nil, ""},

		"pod ranges of the other family":              {config.Config{NodePortAddresses: primary}, ranged(four, "fd00::/64"), false, []string{pods}, ""},
		"pod ranges of the other family, as needed":   {config.Config{NodePortAddresses: primary, DetectLocal: byNode}, ranged(four, "fd00::/64"), false, nil, pods},
		"pod ranges of one family, as needed":         {config.Config{NodePortAddresses: primary, DetectLocal: byNode}, ranged(four, "10.0.0.0/24"), false, nil, ""},
		"pod ranges for the family of a bind address": {config.Config{NodePortAddresses: primary, DetectLocal: byNode, BindAddress: netip.MustParseAddr("2001:db8::1")}, ranged(four, "10.0.0.0/24"), false, nil, pods},

		"servers of a family that the host lacks": {
			config.Config{NodePortAddresses: primary, HealthzBindAddress: server("[::1]:10256"), MetricsBindAddress: server("[2001:db8::1]:10249")},
			four, true, []string{"healthzBindAddress: [::1]:10256", "metricsBindAddress: [2001:db8::1]:10249"}, "",
		},
		"servers of any family":              {config.Config{NodePortAddresses: primary, HealthzBindAddress: server("[::]:10256")}, four, true, nil, ""},
		"servers of a family the host has":   {config.Config{NodePortAddresses: primary, HealthzBindAddress: server("[::1]:10256")}, four, false, nil, ""},
		"a node whose family the host lacks": {config.Config{}, six, true, nil, "this node's address is 2001:db8::1, and this host has no IPv6"},
		"a node of IPv6":                     {config.Config{NodePortAddresses: primary}, six, false, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			warnings, fatal := newFit(test.config, test.node, test.ipv6Off).problems()
			if len(warnings) != len(test.warnings) {
				t.Fatalf("warnings are %q, want %q", warnings, test.warnings)
			}
			for i, want := range test.warnings {
				if !strings.Contains(warnings[i], want) {
					t.Errorf("warning is %q, want %q", warnings[i], want)
				}
			}
			switch {
			case test.fatal == "" && fatal != nil, test.fatal != "" && (fatal == nil || !strings.HasPrefix(fatal.Error(), test.fatal)):
				t.Errorf("error is %v, want %q", fatal, test.fatal)
			}
		})
	}
}

func TestAHostWithoutIPv6(t *testing.T) {
	root := t.TempDir()
	setting := filepath.Join(root, "net/ipv6/conf/all/disable_ipv6")
	if err := os.MkdirAll(filepath.Dir(setting), 0o755); err != nil {
		t.Fatal(err)
	}
	interfaces := filepath.Join(root, "if_inet6")
	for _, step := range []struct {
		what, file, content string
		want                bool
	}{
		{"no kernel support", setting, "0\n", true},
		{"supported", interfaces, "", false},
		{"switched off", setting, "1\n", true},
		{"switched on", setting, "0\n", false},
	} {
		if err := os.WriteFile(step.file, []byte(step.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := ipv6Off(sysctl.Tree{Root: root}, interfaces); got != step.want {
			t.Errorf("%s: off is %v, want %v", step.what, got, step.want)
		}
	}
}
