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
		{[]string{"--iptables-min-sync-period=0", "--iptables-sync-period=1m"}, with(func(c *Config) {
			c.MinSyncPeriod, c.SyncPeriod = 0, time.Minute
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
		"--proxy-mode: nftables: must be iptables, or empty for iptables: nftables is not served yet; --nl-mode=iptables serves this configuration in mode iptables",
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
	ignored := []string{"--cluster-cidr: is ignored beside --config", "--iptables-masquerade-bit: is ignored beside --config"}
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

func TestFlagsForCommands(t *testing.T) {
	c, _, err := fromArgs(t, header, "--config=c.yaml", "--write-config-to=w.yaml", "--init-only", "--cleanup")
	if err != nil || c.File != "c.yaml" || c.WriteConfigTo != "w.yaml" || !c.InitOnly || !c.Cleanup {
		t.Errorf("file %q, write to %q, init-only %t, cleanup %t, error %v", c.File, c.WriteConfigTo, c.InitOnly, c.Cleanup, err)
	}
}

func TestFlagsForPorts(t *testing.T) {
	for _, tt := range []struct {
		args             []string
		healthz, metrics string
		notes            []string
	}{
		{[]string{"--healthz-port=0", "--metrics-port=0"}, "invalid AddrPort", "invalid AddrPort", nil},
		{[]string{"--healthz-bind-address=192.0.2.1", "--healthz-port=8", "--metrics-bind-address=::1", "--metrics-port=9"}, "192.0.2.1:8", "[::1]:9", nil},
		{[]string{"--healthz-port=8"}, "0.0.0.0:10256", "127.0.0.1:10249", []string{"--healthz-port: has no effect: the address of --healthz-bind-address has a port"}},
		{[]string{"--healthz-port=0", "--write-config-to=w.yaml"}, "0.0.0.0:10256", "127.0.0.1:10249", nil},
		{[]string{"--healthz-port=0", "--config=c.yaml"}, "0.0.0.0:10256", "127.0.0.1:10249", []string{"--healthz-port: is ignored beside --config"}},
		// The addresses of the servers follow the bind address in a file alone.
		{[]string{"--bind-address=::", "--healthz-bind-address="}, "0.0.0.0:10256", "127.0.0.1:10249", nil},
	} {
		c, notes, err := fromArgs(t, header, tt.args...)
		if err != nil || c.HealthzBindAddress.String() != tt.healthz || c.MetricsBindAddress.String() != tt.metrics || !slices.Equal(notes, tt.notes) {
			t.Errorf("%s: %s and %s, notes %q, error %v", tt.args, c.HealthzBindAddress, c.MetricsBindAddress, notes, err)
		}
	}
}

func TestFlagsOfLogging(t *testing.T) {
	got, _, err := fromArgs(t, header+"logging: {format: json, vmodule: [{filePattern: a, verbosity: 1}]}\nfeatureGates: {LoggingAlphaOptions: true}",
		"--config=c.yaml", "--logging-format=text", "--vmodule=b=2,c=3", "--log-flush-frequency=1m", "--log-text-split-stream",
		"--log-text-info-buffer-size=2Ki", "--log-json-split-stream", "--log-json-info-buffer-size=8")
	want := with(func(c *Config) {
		c.Logging = Logging{Format: "text", VModule: []VModule{{"b", 2}, {"c", 3}, {"a", 1}}, FlushFrequency: time.Minute, SplitStream: true, InfoBufferSize: 2048}
	})
	if d := diff(want, got); d != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, d)
	}
}

func TestProblemOfFlagBesideAFileNamesTheFlag(t *testing.T) {
	_, _, err := fromArgs(t, header+"logging: {verbosity: 4294967295}\nfeatureGates: {AllBeta: false}",
		"--config=c.yaml", "--logging-format=json", "--log-text-split-stream")
	want := []string{
		"--logging-format: json: must be text unless the feature gate LoggingBetaOptions is on",
		"--log-text-split-stream: true: must be false unless the feature gate LoggingAlphaOptions is on",
		"c.yaml:3: logging.verbosity: 4294967295: must be from 0 to 2147483647",
	}
	if d := cmp.Diff(want, lines(err)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestNotes(t *testing.T) {
	for _, tt := range []struct {
		file string
		args []string
		want []string
	}{
		{"iptables:\n  masqueradebit: 3\nfoo: {bar: 1}\nlogging: {vmodule: [{filePattern: a, verbosity: 1, x: 1}]}", nil, []string{
			"c.yaml:4: iptables.masqueradebit: is not read: there is no such field",
			"c.yaml:5: foo: is not read: there is no such field",
			"c.yaml:6: logging.vmodule[0].x: is not read: there is no such field"}},
		{"oomScoreAdj: -1\nconntrack:\n  min: 1\n  min: 2\noomScoreAdj: 7", nil, []string{
			"c.yaml:6: conntrack.min: is there twice: line 5 is not read",
			"c.yaml:7: oomScoreAdj: is there twice: line 3 is not read"}},
		{"mode: iptables\n---\nmode: nftables", nil, []string{"c.yaml:5: a second document: is not read"}},
		{"ipvs:\n  scheduler: rr\nnftables: {masqueradeBit: 77, syncPeriod: 30s}", nil, []string{
			"c.yaml:4: ipvs.scheduler: is not read in mode iptables",
			"c.yaml:5: nftables.masqueradeBit: is not read in mode iptables"}},
		{"logging:\n  options: {text: {splitStream: true}}", nil, []string{
			"c.yaml:4: logging.options.text.splitStream: has no effect in a file: --log-text-split-stream has"}},
		{"featureGates:\n  AllBeta: false\n  WatchListClient: false\n  NFTablesNetlink: false\n  AllowServiceExternalIPs: true", nil, []string{
			"c.yaml:4: featureGates.AllBeta: has an effect on logging, /statusz and /flagz alone",
			"c.yaml:5: featureGates.WatchListClient: has no effect"}},
		{"", []string{"--ipvs-scheduler=rr", "--ipvs-sync-period=1m", "--ipvs-min-sync-period=30s", "--ipvs-strict-arp", "--feature-gates=NativeHistograms=false"}, []string{
			"--ipvs-sync-period: is not read in mode iptables",
			"--ipvs-min-sync-period: is not read in mode iptables",
			"--feature-gates.NativeHistograms: has no effect",
			"--ipvs-scheduler: is not read in mode iptables",
			"--ipvs-strict-arp: is not read in mode iptables"}},
	} {
		args := tt.args
		if tt.file != "" {
			args = append(args, "--config=c.yaml")
		}
		_, notes, err := fromArgs(t, header+tt.file, args...)
		if d := cmp.Diff(tt.want, notes); d != "" || err != nil {
			t.Errorf("%s %s: error %v (-want +got):\n%s", tt.file, tt.args, err, d)
		}
	}
}

func TestOfRepeatedFieldsTheLastCounts(t *testing.T) {
	c, _, err := fromFile(t, header+"oomScoreAdj: -1\nconntrack:\n  min: 1\n  min: 2\noomScoreAdj: 7")
	if err != nil || c.Conntrack.Min != 2 || c.OOMScoreAdj != 7 {
		t.Errorf("conntrack.min %d, oomScoreAdj %d, error %v", c.Conntrack.Min, c.OOMScoreAdj, err)
	}
}

// The command line stays, and the file may change.
func TestConfigMayBeReadAgain(t *testing.T) {
	set := pflag.NewFlagSet("nlproxy", pflag.ContinueOnError)
	f := Bind(set)
	if err := set.Parse([]string{"--config=c.yaml", "--vmodule=a=1", "--v=2"}); err != nil {
		t.Fatal(err)
	}
	read := func(file string) Config {
		c, _, err := f.Config(func(string) ([]byte, error) { return []byte(header + file), nil })
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := read("mode: iptables")
	read("oomScoreAdj: 5\nlogging: {vmodule: [{filePattern: b, verbosity: 9}]}\nfeatureGates: {AllowServiceExternalIPs: false}")
	if again := read("mode: iptables"); !reflect.DeepEqual(first, again) {
		t.Errorf("first %+v\nagain %+v", first, again)
	}
}

func TestVersion(t *testing.T) {
	for arg, want := range map[string]Version{
		"": "false", "--version": "true", "--version=raw": "raw", "--version=false": "false", "--version=TRUE": "true",
	} {
		set := pflag.NewFlagSet("nlproxy", pflag.ContinueOnError)
		v := BindVersion(set)
		if err := set.Parse(strings.Fields(arg)); err != nil || *v != want {
			t.Errorf("%q: %s, %v", arg, *v, err)
		}
	}
	set := pflag.NewFlagSet("nlproxy", pflag.ContinueOnError)
	BindVersion(set)
	if err := set.Parse([]string{"--version=v1.37.2"}); err == nil || !strings.Contains(err.Error(), `"--version" flag: must be true, false or raw`) {
		t.Error(err)
	}
}

// They are those of the command line, whatever the file says.
func TestFlagsHaveTheirValues(t *testing.T) {
	c, _, err := fromArgs(t, header+"hostnameOverride: other\nfeatureGates: {AllBeta: false}", "--config=c.yaml", "--hostname_override=mine",
		"--feature-gates=NativeHistograms=false,ComponentFlagz=true", "--nl-flow-protocols=tcp,sctp", "-v=3")
	if err != nil || c.ComponentFlagz || c.ComponentStatusz {
		t.Errorf("/flagz %t and /statusz %t despite the file: %v", c.ComponentFlagz, c.ComponentStatusz, err)
	}
	got := c.Flags()
	for name, want := range map[string]string{
		"config": "c.yaml", "hostname-override": "mine", "v": "3",
		"feature-gates": "ComponentFlagz=true,NativeHistograms=false", "nl-flow-protocols": "[tcp,sctp]",
		"cluster-cidr": "", "conntrack-min": "131072", "iptables-sync-period": "30s", "nodeport-addresses": "[]", "cleanup": "false",
	} {
		if value, ok := got[name]; value != want || !ok {
			t.Errorf("--%s is %q, there: %t; want %q", name, value, ok, want)
		}
	}
	for _, f := range flags() {
		if _, ok := got[f.name]; !ok {
			t.Errorf("--%s is missing", f.name)
		}
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

func TestChosenModeCountsOverTheConfiguration(t *testing.T) {
	file := func(text string) func(string) ([]byte, error) {
		return func(string) ([]byte, error) {
			return []byte("apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n" + text), nil
		}
	}
	for name, test := range map[string]struct {
		file    string
		args    []string
		primary bool
		fails   string
	}{
		"nftables":                     {file: "mode: nftables\n", fails: "not served yet; --nl-mode=iptables"},
		"nftables, chosen otherwise":   {file: "mode: nftables\n", args: []string{"--nl-mode=iptables"}, primary: true},
		"ipvs, chosen otherwise":       {file: "mode: ipvs\n", args: []string{"--nl-mode=iptables"}},
		"node ports are where it says": {file: "mode: nftables\nnodePortAddresses: [10.0.0.0/8]\n", args: []string{"--nl-mode=iptables"}},
		"another mode":                 {args: []string{"--nl-mode=nftables"}, fails: `--nl-mode: "nftables": must be iptables`},
	} {
		t.Run(name, func(t *testing.T) {
			fs := pflag.NewFlagSet("", pflag.ContinueOnError)
			flags := Bind(fs)
			if err := fs.Parse(append(test.args, "--config=config.yaml")); err != nil {
				t.Fatal(err)
			}
			c, _, err := flags.Config(file(test.file))
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("error %v, want %q", err, test.fails)
				}
				return
			}
			if err != nil || c.Mode != ModeIPTables || c.NodePortAddresses.Primary != test.primary {
				t.Errorf("mode %s, primary %t, %v", c.Mode, c.NodePortAddresses.Primary, err)
			}
		})
	}
}
