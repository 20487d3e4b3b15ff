package config

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
)

const header = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"

// fromArgs parses args; file is what --config reads.
func fromArgs(t *testing.T, file string, args ...string) (Config, []string, error) {
	t.Helper()
	fs := pflag.NewFlagSet("nlproxy", pflag.ContinueOnError)
	f := Bind(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f.Config(func(string) ([]byte, error) { return []byte(file), nil })
}

func fromFile(t *testing.T, file string) (Config, []string, error) {
	t.Helper()
	return fromArgs(t, file, "--config", "c.yaml")
}

func prefixes(list ...string) []netip.Prefix {
	var ps []netip.Prefix
	for _, s := range list {
		ps = append(ps, netip.MustParsePrefix(s))
	}
	return ps
}

// defaults are what kube-proxy 1.37 runs with when nothing is set.
func defaults() Config {
	return Config{
		ClientConnection:        ClientConnection{ContentType: "application/vnd.kubernetes.protobuf", QPS: 5, Burst: 10},
		Mode:                    "iptables",
		BindAddress:             netip.MustParseAddr("0.0.0.0"),
		DetectLocal:             DetectLocal{Mode: "ClusterCIDR"},
		MasqueradeBit:           14,
		LocalhostNodePorts:      true,
		AllowServiceExternalIPs: true,
		MinSyncPeriod:           time.Second,
		SyncPeriod:              30 * time.Second,
		Conntrack: Conntrack{
			MaxPerCore:            32768,
			Min:                   131072,
			TCPEstablishedTimeout: 24 * time.Hour,
			TCPCloseWaitTimeout:   time.Hour,
		},
		HealthzBindAddress: netip.MustParseAddrPort("0.0.0.0:10256"),
		MetricsBindAddress: netip.MustParseAddrPort("127.0.0.1:10249"),
		ComponentStatusz:   true,
		ComponentFlagz:     true,
		OOMScoreAdj:        -999,
		Logging:            Logging{Format: "text", FlushFrequency: 5 * time.Second},
	}
}

func with(change func(*Config)) Config {
	c := defaults()
	change(&c)
	return c
}

func diff(want, got Config) string {
	want.File = got.File
	return cmp.Diff(want, got, cmpopts.IgnoreUnexported(Config{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }))
}

func TestEmptySourcesGiveKubeProxysDefaults(t *testing.T) {
	for name, args := range map[string][]string{
		"no flags":                    nil,
		"a file of nothing":           {"--config=c.yaml"},
		"flags that are set to empty": {"--proxy-mode=", "--detect-local-mode=", "--bind-address=", "--healthz-bind-address=", "--cluster-cidr="},
	} {
		got, notes, err := fromArgs(t, header, args...)
		if err != nil || len(notes) > 0 {
			t.Errorf("%s: notes %q, error %v", name, notes, err)
		}
		if d := diff(defaults(), got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestFilesOfKubeProxy(t *testing.T) {
	plain := func(change func(*Config)) Config {
		return with(func(c *Config) {
			c.ClientConnection.Kubeconfig = "{kubeconfig}"
			c.HostnameOverride = "node1"
			c.Conntrack = Conntrack{}
			c.MinSyncPeriod = 100 * time.Millisecond
			c.HealthzBindAddress = netip.MustParseAddrPort("127.0.0.1:10256")
			c.DetectLocal.ClusterCIDRs = prefixes("10.244.0.0/16", "fd00:244::/32")
			change(c)
		})
	}
	want := map[string]Config{
		"plain": plain(func(*Config) {}),
		"masquerade-all": plain(func(c *Config) {
			c.MasqueradeAll, c.MasqueradeBit = true, 20
		}),
		"detect-bridge": plain(func(c *Config) {
			c.DetectLocal = DetectLocal{Mode: DetectLocalByBridge, BridgeInterface: "cbr0"}
		}),
		"detect-prefix": plain(func(c *Config) {
			c.DetectLocal = DetectLocal{Mode: DetectLocalByPrefix, InterfaceNamePrefix: "cali"}
		}),
		"detect-node-cidr": plain(func(c *Config) {
			c.DetectLocal = DetectLocal{Mode: DetectLocalByNodeCIDR}
		}),
		"detect-none": plain(func(c *Config) {
			c.DetectLocal.ClusterCIDRs = nil
		}),
		"nodeport-addresses": plain(func(c *Config) {
			c.NodePortAddresses.Prefixes = prefixes("192.168.7.0/24", "fd00:7::/64")
		}),
		"nodeport-primary": plain(func(c *Config) {
			c.NodePortAddresses.Primary = true
		}),
		"no-localhost-nodeports": plain(func(c *Config) {
			c.LocalhostNodePorts = false
		}),
	}
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) != len(want) {
		t.Fatalf("%d files for %d wanted configurations, %v", len(files), len(want), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, notes, err := fromFile(t, string(data))
		if err != nil || len(notes) > 0 {
			t.Errorf("%s: notes %q, error %v", file, notes, err)
		}
		if d := diff(want[strings.TrimSuffix(filepath.Base(file), ".yaml")], got); d != "" {
			t.Errorf("%s (-want +got):\n%s", file, d)
		}
	}
}

func TestValuesOfFile(t *testing.T) {
	for _, tt := range []struct {
		yaml string
		want Config
	}{
		{"iptables: {minSyncPeriod: 0s, syncPeriod: 0s}", defaults()},
		{"iptables: null\nconntrack: {min: null}", defaults()},
		{"iptables: {masqueradeBit: 0}", with(func(c *Config) { c.MasqueradeBit = 0 })},
		{"iptables: {masqueradeBit: 31, masqueradeAll: yes}", with(func(c *Config) { c.MasqueradeBit, c.MasqueradeAll = 31, true })},
		{"hostnameOverride: ' Node07.Example.COM '", with(func(c *Config) { c.HostnameOverride = "node07.example.com" })},
		{"clusterCIDR: 10.244.3.9/16", with(func(c *Config) { c.DetectLocal.ClusterCIDRs = prefixes("10.244.0.0/16") })},
		{"clusterCIDR: 010.244.0.0/16", with(func(c *Config) { c.DetectLocal.ClusterCIDRs = prefixes("10.244.0.0/16") })},
		{"clusterCIDR: 'fc00::/112,192.168.0.0/16'", with(func(c *Config) { c.DetectLocal.ClusterCIDRs = prefixes("fc00::/112", "192.168.0.0/16") })},
		{"detectLocalMode: NodeCIDR\nclusterCIDR: unread", with(func(c *Config) { c.DetectLocal.Mode = DetectLocalByNodeCIDR })},
		{"nodePortAddresses: [primary, localhost, 10.0.0.7/8]", with(func(c *Config) {
			c.NodePortAddresses = NodePortAddresses{Primary: true, Prefixes: prefixes("127.0.0.0/8", "::1/128", "10.0.0.0/8")}
		})},
		{"nodePortAddresses: [all]", with(func(c *Config) { c.NodePortAddresses.Prefixes = prefixes("0.0.0.0/0", "::/0") })},
		{"bindAddress: '::'", with(func(c *Config) {
			c.BindAddress = netip.IPv6Unspecified()
			c.HealthzBindAddress = netip.MustParseAddrPort("[::]:10256")
			c.MetricsBindAddress = netip.MustParseAddrPort("[::1]:10249")
		})},
		{"healthzBindAddress: 192.0.2.1\nmetricsBindAddress: '2001:db8::1'", with(func(c *Config) {
			c.HealthzBindAddress = netip.MustParseAddrPort("192.0.2.1:10256")
			c.MetricsBindAddress = netip.MustParseAddrPort("[2001:db8::1]:10249")
		})},
		{"conntrack: {maxPerCore: 0, udpTimeout: 30s, udpStreamTimeout: 5m, tcpBeLiberal: true}", with(func(c *Config) {
			c.Conntrack.MaxPerCore = 0
			c.Conntrack.TCPBeLiberal = true
			c.Conntrack.UDPTimeout, c.Conntrack.UDPStreamTimeout = 30*time.Second, 5*time.Minute
		})},
		{"clientConnection: {qps: -1, burst: 400, acceptContentTypes: application/json}", with(func(c *Config) {
			c.ClientConnection.QPS, c.ClientConnection.Burst = -1, 400
			c.ClientConnection.AcceptContentTypes = "application/json"
		})},
		{"logging: {format: json, verbosity: 4, flushFrequency: 1000000000}\noomScoreAdj: 0", with(func(c *Config) {
			c.Logging = Logging{Format: "json", Verbosity: 4, FlushFrequency: time.Second}
			c.OOMScoreAdj = 0
		})},
		{"featureGates: {AllowServiceExternalIPs: false}", with(func(c *Config) { c.AllowServiceExternalIPs = false })},
		{"featureGates: {ComponentStatusz: false}", with(func(c *Config) { c.ComponentStatusz = false })},
		{"featureGates: {ComponentFlagz: false}", with(func(c *Config) { c.ComponentFlagz = false })},
		{"portRange: '1'\nwinkernel: {sourceVip: ''}\nwindowsRunAsService: false\nipvs: {excludeCIDRs: [], syncPeriod: 30s}\nnftables: {masqueradeBit: 14}", defaults()},
		{"bindAddressHardFail: true\nenableProfiling: true", with(func(c *Config) {
			c.BindAddressHardFail, c.EnableProfiling = true, true
		})},
		{"logging: {vmodule: [{filePattern: a*, verbosity: 4}], options: {text: {infoBufferSize: 4Ki}}}\nfeatureGates: {LoggingAlphaOptions: true}", with(func(c *Config) {
			c.Logging.VModule = []VModule{{"a*", 4}}
			c.Logging.InfoBufferSize = 4096
		})},
		{"featureGates: {PreferSameTrafficDistribution: true, KubeProxyIPVS: false, ClientsAllowCBOR: false, ComponentFlagz: true}", defaults()},
		{"iptables: {masqueradeBit: 3.0}", with(func(c *Config) { c.MasqueradeBit = 3 })},
	} {
		got, notes, err := fromFile(t, header+tt.yaml)
		if err != nil || len(notes) > 0 {
			t.Errorf("%s: notes %q, error %v", tt.yaml, notes, err)
		}
		if d := diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.yaml, d)
		}
	}
}

func TestJSONFile(t *testing.T) {
	got, _, err := fromFile(t, `{"kind": "KubeProxyConfiguration", "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "iptables": {"masqueradeBit": 3}}`)
	if err != nil || got.MasqueradeBit != 3 {
		t.Errorf("bit %d, error %v", got.MasqueradeBit, err)
	}
}

// What is written is accepted, and means the same.
func TestPublishedFormIsReadBack(t *testing.T) {
	for _, args := range [][]string{
		nil,
		{"--v=3", "--vmodule=a=1", "--nodeport-addresses=primary", "--hostname-override=N1", "--cluster-cidr=10.0.0.0/8,fd00::/64",
			"--feature-gates=AllowServiceExternalIPs=false", "--log-flush-frequency=1m", "--iptables-sync-period=1h", "--oom-score-adj=0"},
	} {
		first, _, err := fromArgs(t, "", args...)
		if err != nil {
			t.Fatal(err)
		}
		text, err := first.YAML()
		if err != nil {
			t.Fatal(err)
		}
		again, notes, err := fromFile(t, string(text))
		if d := diff(first, again); d != "" || err != nil || len(notes) > 0 {
			t.Errorf("%s: notes %q, error %v (-written +read):\n%s\n%s", args, notes, err, d, text)
		}
	}
}
