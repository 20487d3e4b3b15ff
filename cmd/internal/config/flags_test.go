package config

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/kube-proxy/config/v1alpha1"
)

func TestFlags(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want Config
	}{
		{[]string{"--manifests=/etc/objects", "--master=https://192.0.2.1:6443"}, with(func(c *Config) {
			c.Manifests, c.Master = "/etc/objects", "https://192.0.2.1:6443"
		})},
		{[]string{"--kubeconfig=/k", "--kube-api-qps=50", "--kube-api-burst=100", "--kube-api-content-type=application/json"}, with(func(c *Config) {
			c.ClientConnection = ClientConnection{Kubeconfig: "/k", QPS: 50, Burst: 100, ContentType: "application/json"}
		})},
		{[]string{"--proxy-mode=iptables", "--hostname-override=Node1", "--bind-address=192.0.2.7"}, with(func(c *Config) {
			c.HostnameOverride, c.BindAddress = "node1", netip.MustParseAddr("192.0.2.7")
		})},
		{[]string{"--cluster-cidr=10.244.0.0/16,fd00:244::/32"}, with(func(c *Config) {
			c.DetectLocal.ClusterCIDRs = prefixes("10.244.0.0/16", "fd00:244::/32")
		})},
		{[]string{"--detect-local-mode=BridgeInterface", "--pod-bridge-interface=cbr0"}, with(func(c *Config) {
			c.DetectLocal = DetectLocal{Mode: DetectLocalByBridge, BridgeInterface: "cbr0"}
		})},
		{[]string{"--detect-local-mode=InterfaceNamePrefix", "--pod-interface-name-prefix=cali"}, with(func(c *Config) {
			c.DetectLocal = DetectLocal{Mode: DetectLocalByPrefix, InterfaceNamePrefix: "cali"}
		})},
		{[]string{"--nodeport-addresses=primary,10.0.0.0/8", "--nodeport-addresses=fd00::/8"}, with(func(c *Config) {
			c.NodePortAddresses = NodePortAddresses{Primary: true, Prefixes: prefixes("10.0.0.0/8", "fd00::/8")}
		})},
		{[]string{"--masquerade-all", "--iptables-masquerade-bit=7", "--iptables-localhost-nodeports=false"}, with(func(c *Config) {
			c.MasqueradeAll, c.MasqueradeBit, c.LocalhostNodePorts = true, 7, false
		})},
		// A flag can ask for no pause at all; in a file 0 means the default.
		{[]string{"--iptables-min-sync-period=0", "--iptables-sync-period=1m", "--config-sync-period=1h"}, with(func(c *Config) {
			c.MinSyncPeriod, c.SyncPeriod, c.ConfigSyncPeriod = 0, time.Minute, time.Hour
		})},
		{[]string{"--conntrack-max-per-core=1", "--conntrack-min=2", "--conntrack-tcp-be-liberal",
			"--conntrack-tcp-timeout-established=3s", "--conntrack-tcp-timeout-close-wait=4s",
			"--conntrack-udp-timeout=5s", "--conntrack-udp-timeout-stream=6s"}, with(func(c *Config) {
			c.Conntrack = Conntrack{1, 2, true, 3 * time.Second, 4 * time.Second, 5 * time.Second, 6 * time.Second}
		})},
		{[]string{"--healthz-bind-address=::1", "--metrics-bind-address=0.0.0.0:9"}, with(func(c *Config) {
			c.HealthzBindAddress = netip.MustParseAddrPort("[::1]:10256")
			c.MetricsBindAddress = netip.MustParseAddrPort("0.0.0.0:9")
		})},
		{[]string{"-v=4", "--logging-format=json", "--oom_score_adj=5"}, with(func(c *Config) {
			c.Logging, c.OOMScoreAdj = Logging{Format: "json", Verbosity: 4, FlushFrequency: 5 * time.Second}, 5
		})},
		{[]string{"--feature-gates=AllowServiceExternalIPs=false"}, with(func(c *Config) { c.AllowServiceExternalIPs = false })},
	} {
		got, notes, err := fromArgs(t, "", tt.args...)
		if err != nil || len(notes) > 0 {
			t.Errorf("%s: notes %q, error %v", tt.args, notes, err)
		}
		if d := diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.args, d)
		}
	}
}

func TestProblemsOfFlagsNameTheFlag(t *testing.T) {
	_, _, err := fromArgs(t, "", "--iptables-masquerade-bit=40", "--iptables-sync-period=0", "--proxy-mode=nftables",
		"--nodeport-addresses=primary,eth0", "--cluster-cidr=pods", "--detect-local-mode=ClusterCIDR")
	want := []string{
		"--iptables-masquerade-bit: 40: must be from 0 to 31",
		"--iptables-sync-period: 0s: must be more than 0",
		"--proxy-mode: nftables is not served yet: must be iptables, or empty for iptables",
		`--cluster-cidr: "pods": must be an address range such as 10.244.0.0/16 or fd00:244::/56`,
		`--nodeport-addresses[1]: "eth0": must be an address range such as 192.0.2.0/24, or primary, localhost or all`,
	}
	if d := cmp.Diff(want, lines(err)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestFlowProtocols(t *testing.T) {
	c, _, err := fromArgs(t, "", "--nl-flow-protocols=sctp,tcp")
	if err != nil || !slices.Equal(c.FlowProtocols, []string{"sctp", "tcp"}) {
		t.Errorf("%q, %v", c.FlowProtocols, err)
	}
	_, _, err = fromArgs(t, "", "--nl-flow-protocols=udp,ICMP")
	if want := `--nl-flow-protocols: "ICMP": must be of udp, sctp, tcp`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestFlagsBesideAFile(t *testing.T) {
	got, notes, err := fromArgs(t, header+"hostnameOverride: of-file\nlogging: {verbosity: 1}\niptables: {masqueradeBit: 3}\nbindAddress: 192.0.2.1",
		"--config=c.yaml", "--hostname-override=Of-Flag", "--v=5", "--master=https://192.0.2.9", "--manifests=/m",
		"--iptables-masquerade-bit=9", "--cluster-cidr=unread")
	if err != nil {
		t.Fatal(err)
	}
	want := with(func(c *Config) {
		c.HostnameOverride, c.Logging.Verbosity = "of-flag", 5
		c.Master, c.Manifests = "https://192.0.2.9", "/m"
		c.MasqueradeBit, c.BindAddress = 3, netip.MustParseAddr("192.0.2.1")
	})
	if d := diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	ignored := []string{"--cluster-cidr: ignored beside --config", "--iptables-masquerade-bit: ignored beside --config"}
	if d := cmp.Diff(ignored, notes); d != "" {
		t.Errorf("notes (-want +got):\n%s", d)
	}
}

func TestEmptyHostnameFlagLeavesTheFilesName(t *testing.T) {
	got, _, err := fromArgs(t, header+"hostnameOverride: of-file", "--config=c.yaml", "--hostname-override=")
	if err != nil || got.HostnameOverride != "of-file" {
		t.Errorf("%q, %v", got.HostnameOverride, err)
	}
}

func TestNotesNameWhatHasNoEffect(t *testing.T) {
	_, notes, err := fromFile(t, header+"enableProfiling: true\nbindAddressHardFail: true\nshowHiddenMetricsForVersion: '1.36'\n"+
		"logging: {vmodule: [{filePattern: a, verbosity: 1}], options: {json: {splitStream: true}}}\n"+
		"featureGates: {NFTablesNetlink: false, Fast: true, AllowServiceExternalIPs: true, PreferSameTrafficDistribution: true}")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"featureGates.Fast: no such feature gate",
		"featureGates.NFTablesNetlink: has no effect",
		"featureGates.PreferSameTrafficDistribution: has no effect: it is always on",
		"logging.options: has no effect",
		"logging.vmodule: has no effect",
	}
	if d := cmp.Diff(want, notes); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Every row of the table defines its flag, names a field that exists and is
// found under each name once.
func TestTableOfFlags(t *testing.T) {
	fs := pflag.NewFlagSet("nlproxy", pflag.ContinueOnError)
	Bind(fs)
	fields := map[string]string{}
	for _, f := range flags() {
		if fs.Lookup(f.name) == nil {
			t.Errorf("--%s: not defined", f.name)
		}
		if f.field == "" {
			continue
		}
		if other, twice := fields[f.field]; twice {
			t.Errorf("--%s and --%s both set %s", f.name, other, f.field)
		}
		fields[f.field] = f.name
		if !hasField(t, f.field) {
			t.Errorf("--%s: no field %s", f.name, f.field)
		}
	}
}

func hasField(t *testing.T, path string) bool {
	t.Helper()
	at := reflect.ValueOf(&v1alpha1.KubeProxyConfiguration{}).Elem()
	for name := range strings.SplitSeq(path, ".") {
		var ok bool
		if at, ok = fieldNamed(at, name); !ok {
			return false
		}
	}
	return true
}
