package configuration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

// wrong is a value that a field may not have.
type wrong struct {
	Setting
	// at is the path that is named, if it is not that of the field.
	at string
	// shown is how the value is written, and allowed what is said of it.
	shown, allowed string
	// ours is set where kube-proxy accepts the value.
	ours bool
}

func wrongValues() []wrong {
	const (
		oneRange   = "must be one range, or one of each IP family with a comma between"
		prefix     = "must be an address range such as 10.244.0.0/16 or fd00:244::/56"
		hostPort   = "must be an IP address, or one with a port from 1 to 65535 (192.0.2.1:10256, [2001:db8::1]:10256)"
		nodePort   = "must be an address range such as 192.0.2.0/24, or primary, localhost or all"
		notBelow0  = "must be 0 or more"
		above0     = "must be more than 0"
		natural    = "must be from 0 to 2147483647"
		iptables   = "must be iptables, or empty for iptables"
		windows    = "must be empty or false: it is for Windows"
		alphaGate  = "unless the feature gate LoggingAlphaOptions is on"
		filePatten = "must be a pattern without = and comma"
	)
	set := func(name, value string) Setting { return Setting{Name: name, Value: value} }
	beside := func(beside, name, value string) Setting { return Setting{Name: name, Value: value, Beside: beside} }
	return []wrong{
		{set("bindAddress", "eth0"), "", `"eth0"`, "must be an IP address", false},
		{set("clientConnection.burst", "-1"), "", "-1", natural, false},
		{set("clusterCIDR", "pods"), "", `"pods"`, prefix, false},
		{set("clusterCIDR", "'10.0.0.0/8,10.1.0.0/16'"), "", `"10.0.0.0/8,10.1.0.0/16"`, oneRange, false},
		{set("clusterCIDR", "'10.0.0.0/8,fd00::/64,fd01::/64'"), "", `"10.0.0.0/8,fd00::/64,fd01::/64"`, oneRange, false},
		{set("clusterCIDR", "'::ffff:10.0.0.0/104'"), "", `"::ffff:10.0.0.0/104"`, prefix, true},
		{set("configSyncPeriod", "-1s"), "", "-1s", above0, false},
		{set("conntrack.maxPerCore", "-1"), "", "-1", natural, false},
		{set("conntrack.min", "-1"), "", "-1", natural, false},
		{set("conntrack.tcpCloseWaitTimeout", "-1s"), "", "-1s", notBelow0, false},
		{set("conntrack.tcpEstablishedTimeout", "-1s"), "", "-1s", notBelow0, false},
		{set("conntrack.udpStreamTimeout", "-1s"), "", "-1s", notBelow0, false},
		{set("conntrack.udpTimeout", "-1s"), "", "-1s", notBelow0, false},
		{beside("detectLocalMode: BridgeInterface\n", "detectLocal.bridgeInterface", "''"), "", `""`, "must be of 1 to 15 bytes in detectLocalMode BridgeInterface", false},
		{beside("detectLocalMode: InterfaceNamePrefix\n", "detectLocal.interfaceNamePrefix", "''"), "", `""`, "must be of 1 to 15 bytes in detectLocalMode InterfaceNamePrefix", false},
		{beside("detectLocalMode: BridgeInterface\n", "detectLocal.bridgeInterface", "sixteen-bytes-xx"), "", `"sixteen-bytes-xx"`, "must be of 1 to 15 bytes in detectLocalMode BridgeInterface", true},
		{set("detectLocalMode", "Cluster"), "", `"Cluster"`, "must be ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix", false},
		{set("featureGates.Fast", "true"), "", "true", "must be a feature gate of kube-proxy 1.37", false},
		{set("featureGates.PreferSameTrafficDistribution", "false"), "", "false", "must be true, to which this gate is locked", false},
		{set("featureGates.WorkloadWithJob", "true"), "", "true", "must be false while GenericWorkload is", false},
		{set("healthzBindAddress", "'192.0.2.1:0'"), "", `"192.0.2.1:0"`, hostPort, false},
		{set("healthzBindAddress", "':10256'"), "", `":10256"`, hostPort, false},
		// This kube-proxy refuses later, when it asks for the node.
		{set("hostnameOverride", "'  '"), "", `"  "`, "must be the name of a node, or empty for the host's name", true},
		{set("iptables.masqueradeBit", "-1"), "", "-1", "must be from 0 to 31", false},
		{set("iptables.masqueradeBit", "32"), "", "32", "must be from 0 to 31", false},
		{set("iptables.minSyncPeriod", "-1s"), "", "-1s", notBelow0, false},
		{set("iptables.minSyncPeriod", "1m"), "", "1m0s", "must be at most iptables.syncPeriod, 30s", false},
		{set("iptables.syncPeriod", "-1s"), "", "-1s", above0, false},
		{set("logging.flushFrequency", "-1s"), "", "-1s", above0, false},
		{set("logging.format", "xml"), "", `"xml"`, "must be text or json", false},
		{beside("featureGates: {LoggingBetaOptions: false}\n", "logging.format", "json"), "", "json", "must be text unless the feature gate LoggingBetaOptions is on", false},
		{set("logging.options.json.infoBufferSize", "4Ki"), "", "4Ki", "must be 0 " + alphaGate, false},
		{set("logging.options.text.infoBufferSize", "4Ki"), "", "4Ki", "must be 0 " + alphaGate, false},
		{set("logging.verbosity", "2147483648"), "", "2147483648", natural, false},
		{beside("logging: {format: json, %s}", "logging.vmodule", "[{filePattern: a, verbosity: 1}]"), "", "a=1", "must be empty unless logging.format is text", false},
		{set("logging.vmodule", "[{filePattern: a=b, verbosity: 1}]"), "logging.vmodule[0].filePattern", `"a=b"`, filePatten, false},
		{set("logging.vmodule", "[{verbosity: 1}]"), "logging.vmodule[0].filePattern", `""`, filePatten, false},
		{set("logging.vmodule", "[{filePattern: a, verbosity: 2147483648}]"), "logging.vmodule[0].verbosity", "2147483648", natural, false},
		{set("metricsBindAddress", "'localhost:10249'"), "", `"localhost:10249"`, hostPort, false},
		{set("metricsBindAddress", "'192.0.2.1:65536'"), "", `"192.0.2.1:65536"`, hostPort, false},
		{set("mode", "ebpf"), "", `"ebpf"`, iptables, false},
		{set("mode", "ipvs"), "", "ipvs", iptables + ": ipvs is not served yet; --nl-mode=iptables serves this configuration in mode iptables", true},
		{set("mode", "nftables"), "", "nftables", iptables + ": nftables is not served yet; --nl-mode=iptables serves this configuration in mode iptables", true},
		{set("nodePortAddresses", "[eth0]"), "nodePortAddresses[0]", `"eth0"`, nodePort, false},
		{set("nodePortAddresses", "[primary, primary]"), "nodePortAddresses[1]", `"primary"`, "must be there only once", false},
		{set("oomScoreAdj", "-1001"), "", "-1001", "must be from -1000 to 1000", false},
		{set("oomScoreAdj", "1001"), "", "1001", "must be from -1000 to 1000", false},
		{set("showHiddenMetricsForVersion", "'1.35'"), "", `"1.35"`, `must be "1.36" or empty`, false},
		{set("windowsRunAsService", "true"), "", "true", "must be false: there is no such service on Linux", true},
		{set("winkernel.enableDSR", "true"), "", "true", windows, true},
		{set("winkernel.forwardHealthCheckVip", "true"), "", "true", windows, true},
		{set("winkernel.networkName", "x"), "", "x", windows, true},
		{set("winkernel.rootHnsEndpointName", "x"), "", "x", windows, true},
		{set("winkernel.sourceVip", "x"), "", "x", windows, true},
	}
}

// wrongTypes are values of another type, one for each field.
func wrongTypes() (all []wrong) {
	for _, path := range Paths() {
		w := wrong{Setting: Setting{Name: path, Value: "{}"}, shown: "{}", allowed: "must be "}
		switch path {
		case "kind", "apiVersion":
			continue
		case "featureGates":
			w.Value, w.shown = "7", "7"
		}
		all = append(all, w)
	}
	return all
}

// A wrong value costs one line and nothing else.
func TestWrongValuesAreRefusedByNameAndLeaveTheKernelAlone(t *testing.T) {
	ns := labtest.Namespace(t)
	labtest.Run(t, ns, "add table ip nat\nadd chain ip nat KUBE-SERVICES\nadd rule ip nat KUBE-SERVICES counter", "nft", "-f", "-")
	ruleset, generation := labtest.Run(t, ns, "", "nft", "list", "ruleset"), daemon.Generation(t, ns)
	settings := settingsOf(t, ns)
	t.Run("values", func(t *testing.T) {
		for _, w := range slices.Concat(wrongValues(), wrongTypes()) {
			t.Run(w.Name+"="+w.Value, func(t *testing.T) {
				t.Parallel()
				w.refused(t, ns)
			})
		}
	})
	if now := daemon.Generation(t, ns); now != generation {
		t.Errorf("generation of the ruleset %d, before %d", now, generation)
	}
	if now := labtest.Run(t, ns, "", "nft", "list", "ruleset"); now != ruleset {
		t.Errorf("ruleset before:\n%s\nafter:\n%s", ruleset, now)
	}
	if diff := cmp.Diff(settings, settingsOf(t, ns)); diff != "" {
		t.Errorf("settings of the network (-before +after):\n%s", diff)
	}
}

// settingsOf are all that a proxy may change below /proc/sys.
func settingsOf(t *testing.T, ns *lab.Namespace) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := ns.Do(func() error {
		for _, folder := range []string{"ipv4/conf/all", "ipv4/conf/lo", "netfilter"} {
			paths, err := filepath.Glob("/proc/sys/net/" + folder + "/*")
			if err != nil {
				return err
			}
			for _, path := range paths {
				content, err := os.ReadFile(path)
				if err == nil { // some can only be written
					all[path] = string(content)
				}
			}
		}
		return nil
	})
	if err != nil || all["/proc/sys/net/ipv4/conf/all/route_localnet"] == "" || all["/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established"] == "" {
		t.Fatalf("%d settings: %v", len(all), err)
	}
	// It counts by itself.
	delete(all, "/proc/sys/net/netfilter/nf_conntrack_count")
	return all
}

func (w wrong) refused(t *testing.T, ns *lab.Namespace) {
	content, _ := w.Files()
	path := file(t, content)
	var end ended
	if err := ns.Do(func() error { end = run(t, daemon.Binary(t), "--config="+path); return nil }); err != nil {
		t.Fatal(err)
	}
	at := w.at
	if at == "" {
		at = w.Name
	}
	want := fmt.Sprintf("nlproxy: %s:%d: %s: %s: %s", path, w.line(content), at, w.shown, w.allowed)
	if end.code != 1 || !strings.HasPrefix(end.errors, want) || strings.Count(end.errors, "\n") != 1 || end.out != "" {
		t.Errorf("code %d, printed %q, errors %q; want %q", end.code, end.out, end.errors, want)
	}
}

// line is where the field is in a file.
func (w wrong) line(content string) int {
	names := strings.Split(w.Name, ".")
	before, _, _ := strings.Cut(content, names[len(names)-1]+": "+w.Value)
	return strings.Count(before, "\n") + 1
}

// It is not only here that these values are wrong.
func TestKubeProxyRefusesWhatIsWrong(t *testing.T) {
	peer := kubeProxy(t)
	for _, w := range slices.Concat(wrongValues(), wrongTypes()) {
		t.Run(w.Name+"="+w.Value, func(t *testing.T) {
			t.Parallel()
			content, _ := w.Files()
			end := run(t, peer, "--config="+file(t, content), "--write-config-to=/dev/null")
			if accepted := end.code == 0; accepted != w.ours {
				t.Errorf("accepted: %t, want %t: %s", accepted, w.ours, end.errors)
			}
		})
	}
}

// The table has a wrong value for every field that nlproxy reads and that does
// not take any value of its type.
func TestTableOfWrongValuesHasEveryField(t *testing.T) {
	anything := []string{
		"bindAddressHardFail", "enableProfiling", "iptables.localhostNodePorts", "iptables.masqueradeAll", "conntrack.tcpBeLiberal",
		"clientConnection.acceptContentTypes", "clientConnection.contentType", "clientConnection.kubeconfig", "clientConnection.qps",
	}
	have := anything
	for _, w := range wrongValues() {
		name, _, _ := strings.Cut(w.Name, "featureGates.")
		if name == "" {
			name = "featureGates"
		}
		have = append(have, name)
	}
	for _, s := range Fields() {
		if read := s.Outcome == Honoured || s.Outcome == Refused; read && !slices.Contains(have, s.Name) {
			t.Errorf("%s: no wrong value of this field", s.Name)
		}
	}
}
