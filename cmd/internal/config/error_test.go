package config

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func lines(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

// Fields begin on line 3, after the header.
func TestProblemsOfFile(t *testing.T) {
	const hostPort = "must be an IP address, or one with a port from 1 to 65535 (192.0.2.1:10256, [2001:db8::1]:10256)"
	for _, tt := range []struct {
		yaml string
		want []string
	}{
		{"mode: nftables", []string{"c.yaml:3: mode: nftables: must be iptables, or empty for iptables: nftables is not served yet; --nl-mode=iptables serves this configuration in mode iptables"}},
		{"mode: ipvs", []string{"c.yaml:3: mode: ipvs: must be iptables, or empty for iptables: ipvs is not served yet; --nl-mode=iptables serves this configuration in mode iptables"}},
		{"mode: IPTables", []string{`c.yaml:3: mode: "IPTables": must be iptables, or empty for iptables`}},
		{"iptables:\n  masqueradeBit: 32", []string{"c.yaml:4: iptables.masqueradeBit: 32: must be from 0 to 31"}},
		{"iptables: {masqueradeBit: -1}", []string{"c.yaml:3: iptables.masqueradeBit: -1: must be from 0 to 31"}},
		{"iptables: {masqueradeBit: 99999999999}", []string{"c.yaml:3: iptables.masqueradeBit: 99999999999: must be a whole number of 32 bits"}},
		{"iptables: {syncPeriod: -1s, minSyncPeriod: -2s}", []string{
			"c.yaml:3: iptables.minSyncPeriod: -2s: must be 0 or more",
			"c.yaml:3: iptables.syncPeriod: -1s: must be more than 0"}},
		{"iptables: {minSyncPeriod: 1m}", []string{"c.yaml:3: iptables.minSyncPeriod: 1m0s: must be at most iptables.syncPeriod, 30s"}},
		{"configSyncPeriod: -1s", []string{"c.yaml:3: configSyncPeriod: -1s: must be more than 0"}},
		{"clusterCIDR: 10.0.0.0/8,10.1.0.0/16", []string{`c.yaml:3: clusterCIDR: "10.0.0.0/8,10.1.0.0/16": must be one range, or one of each IP family with a comma between`}},
		{"clusterCIDR: 10.0.0.0/8, fd00::/64", []string{`c.yaml:3: clusterCIDR: " fd00::/64": must be an address range such as 10.244.0.0/16 or fd00:244::/56`}},
		{"clusterCIDR: '::ffff:10.0.0.0/104'", []string{`c.yaml:3: clusterCIDR: "::ffff:10.0.0.0/104": must be an address range such as 10.244.0.0/16 or fd00:244::/56`}},
		{"detectLocalMode: Cluster", []string{`c.yaml:3: detectLocalMode: "Cluster": must be ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix`}},
		{"detectLocalMode: BridgeInterface", []string{`c.yaml: detectLocal.bridgeInterface: "": must be of 1 to 15 bytes in detectLocalMode BridgeInterface`}},
		{"detectLocalMode: InterfaceNamePrefix\ndetectLocal: {interfaceNamePrefix: abcdefghijklmnop}", []string{
			`c.yaml:4: detectLocal.interfaceNamePrefix: "abcdefghijklmnop": must be of 1 to 15 bytes in detectLocalMode InterfaceNamePrefix`}},
		{"nodePortAddresses:\n- 10.0.0.0/8\n- 10.0.0.1\n- primary\n- primary", []string{
			`c.yaml:5: nodePortAddresses[1]: "10.0.0.1": must be an address range such as 192.0.2.0/24, or primary, localhost or all`,
			`c.yaml:7: nodePortAddresses[3]: "primary": must be there only once`}},
		{"bindAddress: eth0", []string{`c.yaml:3: bindAddress: "eth0": must be an IP address`}},
		{"healthzBindAddress: ':10256'\nmetricsBindAddress: '10.0.0.1:0'", []string{
			`c.yaml:3: healthzBindAddress: ":10256": ` + hostPort,
			`c.yaml:4: metricsBindAddress: "10.0.0.1:0": ` + hostPort}},
		{"hostnameOverride: '  '", []string{`c.yaml:3: hostnameOverride: "  ": must be the name of a node, or empty for the host's name`}},
		{"conntrack: {maxPerCore: -1, min: -2, udpTimeout: -1s}", []string{
			"c.yaml:3: conntrack.maxPerCore: -1: must be from 0 to 2147483647",
			"c.yaml:3: conntrack.min: -2: must be from 0 to 2147483647",
			"c.yaml:3: conntrack.udpTimeout: -1s: must be 0 or more"}},
		{"clientConnection: {burst: -1}", []string{"c.yaml:3: clientConnection.burst: -1: must be from 0 to 2147483647"}},
		{"oomScoreAdj: 1001", []string{"c.yaml:3: oomScoreAdj: 1001: must be from -1000 to 1000"}},
		{"logging: {format: xml, verbosity: 4294967295, flushFrequency: -1s}", []string{
			"c.yaml:3: logging.verbosity: 4294967295: must be from 0 to 2147483647",
			"c.yaml:3: logging.flushFrequency: -1s: must be more than 0",
			`c.yaml:3: logging.format: "xml": must be text or json`}},

		{"iptables: {syncPeriod: 30, masqueradeAll: 1}\nbindAddress: 4\nnodePortAddresses: all\nconntrack: []\nlogging: {verbosity: -1}", []string{
			"c.yaml:3: iptables.masqueradeAll: 1: must be true or false",
			`c.yaml:3: iptables.syncPeriod: 30: must be a duration such as "30s" or "1h15m"`,
			"c.yaml:4: bindAddress: 4: must be a string",
			`c.yaml:5: nodePortAddresses: "all": must be a list of strings`,
			"c.yaml:6: conntrack: []: must be a mapping",
			"c.yaml:7: logging.verbosity: -1: must be a whole number from 0 to 2147483647"}},
		{"iptables: {syncPeriod: soon}\nclientConnection: {qps: many}\nfeatureGates: {A: maybe}", []string{
			`c.yaml:3: iptables.syncPeriod: "soon": must be a duration such as "30s" or "1h15m"`,
			`c.yaml:4: clientConnection.qps: "many": must be a number`,
			`c.yaml:5: featureGates.A: "maybe": must be true or false`}},
		{"logging: {vmodule: [{filePattern: a, verbosity: x}, {verbosity: 4294967295}, {filePattern: 'a=b'}]}", []string{
			`c.yaml:3: logging.vmodule[0].verbosity: "x": must be a whole number from 0 to 2147483647`,
			`c.yaml:3: logging.vmodule[1].filePattern: "": must be a pattern without = and comma`,
			"c.yaml:3: logging.vmodule[1].verbosity: 4294967295: must be from 0 to 2147483647",
			`c.yaml:3: logging.vmodule[2].filePattern: "a=b": must be a pattern without = and comma`}},
		{"logging: {vmodule: 1}\nfeatureGates: [A]", []string{
			"c.yaml:3: logging.vmodule: 1: must be a list",
			`c.yaml:4: featureGates: ["A"]: must be a mapping`}},
		{"logging:\n  format: json\n  vmodule: [{filePattern: a, verbosity: 1}]", []string{
			"c.yaml:5: logging.vmodule: a=1: must be empty unless logging.format is text"}},
		{"logging: {format: json}\nfeatureGates: {AllBeta: false}", []string{
			"c.yaml:3: logging.format: json: must be text unless the feature gate LoggingBetaOptions is on"}},
		{"logging: {options: {json: {infoBufferSize: 4Ki}}}", []string{
			"c.yaml:3: logging.options.json.infoBufferSize: 4Ki: must be 0 unless the feature gate LoggingAlphaOptions is on"}},
		{"logging: {options: {text: {infoBufferSize: much}}}", []string{
			`c.yaml:3: logging.options.text.infoBufferSize: "much": must be a number of bytes such as 512, 4Ki or 1M`}},
		{"featureGates:\n  Fast: true\n  PreferSameTrafficDistribution: false", []string{
			"c.yaml:4: featureGates.Fast: true: must be a feature gate of kube-proxy 1.37",
			"c.yaml:5: featureGates.PreferSameTrafficDistribution: false: must be true, to which this gate is locked"}},
		{"featureGates: {WorkloadWithJob: true}", []string{
			"c.yaml:3: featureGates.WorkloadWithJob: true: must be false while GenericWorkload is"}},
		{"showHiddenMetricsForVersion: '1.35'", []string{`c.yaml:3: showHiddenMetricsForVersion: "1.35": must be "1.36" or empty`}},
		{"winkernel: {enableDSR: true, sourceVip: x}\nwindowsRunAsService: true", []string{
			"c.yaml:3: winkernel.sourceVip: x: must be empty or false: it is for Windows",
			"c.yaml:3: winkernel.enableDSR: true: must be empty or false: it is for Windows",
			"c.yaml:4: windowsRunAsService: true: must be false: there is no such service on Linux"}},
		{"iptables: {masqueradeBit: 99, foo: 1}\noomScoreAdj: many", []string{
			"c.yaml:3: iptables.masqueradeBit: 99: must be from 0 to 31",
			`c.yaml:4: oomScoreAdj: "many": must be a whole number of 32 bits`}},
	} {
		_, _, err := fromFile(t, header+tt.yaml)
		if d := cmp.Diff(tt.want, lines(err)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.yaml, d)
		}
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	for _, tt := range []struct {
		file string
		want []string
	}{
		{"", []string{`c.yaml: kind: "": must be KubeProxyConfiguration`, `c.yaml: apiVersion: "": must be kubeproxy.config.k8s.io/v1alpha1`}},
		{"apiVersion: kubeproxy.config.k8s.io/v1beta1\nkind: KubeProxyConfiguration\nfoo: 1", []string{`c.yaml:1: apiVersion: "kubeproxy.config.k8s.io/v1beta1": must be kubeproxy.config.k8s.io/v1alpha1`}},
		{"apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeletConfiguration", []string{`c.yaml:2: kind: "KubeletConfiguration": must be KubeProxyConfiguration`}},
		{"- a\n- b", []string{`c.yaml: kind: "": must be KubeProxyConfiguration`, `c.yaml: apiVersion: "": must be kubeproxy.config.k8s.io/v1alpha1`}},
		{"a: b: c", []string{"c.yaml: yaml: mapping values are not allowed in this context"}},
	} {
		_, _, err := fromFile(t, tt.file)
		if d := cmp.Diff(tt.want, lines(err)); d != "" {
			t.Errorf("%q (-want +got):\n%s", tt.file, d)
		}
	}
}

func TestUnreadableFileIsNamed(t *testing.T) {
	set := pflag.NewFlagSet("nlproxy", pflag.ContinueOnError)
	f := Bind(set)
	if err := set.Parse([]string{"--config=c.yaml"}); err != nil {
		t.Fatal(err)
	}
	_, _, err := f.Config(func(name string) ([]byte, error) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	})
	if !errors.Is(err, fs.ErrNotExist) || err.Error() != "read --config: open c.yaml: file does not exist" {
		t.Error(err)
	}
}

// Whatever a file holds, the outcome is an error or a complete configuration.
func FuzzFile(f *testing.F) {
	for _, s := range []string{
		"", "a: b: c", header, header + "iptables: &a {masqueradeBit: 3}\nnftables: *a", header + "<<: {mode: ipvs}",
		header + "iptables: {syncPeriod: null, masqueradeBit: null}\n---\nx: 1", header + "? [a]\n: b", header + "a.b[: 1\n\"\": 2",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, _, err := fromFile(t, s)
		if err == nil && (c.Mode != ModeIPTables || c.MasqueradeBit > 31 || c.SyncPeriod <= 0 || c.MinSyncPeriod > c.SyncPeriod ||
			!c.BindAddress.IsValid() || !c.HealthzBindAddress.IsValid() || !c.MetricsBindAddress.IsValid()) {
			t.Errorf("accepted as %+v", c)
		}
	})
}
