package config

import (
	"time"

	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kube-proxy/config/v1alpha1"
)

// settings is where flags are kept until they are checked.
type settings struct {
	v1alpha1.KubeProxyConfiguration
	config, writeTo   string
	cleanup, initOnly bool
	manifests, master string
	flowProtocols     []string
	mode              string

	healthzPort, metricsPort        int32
	ipvsSyncPeriod, ipvsMinimumSync time.Duration
}

// newSettings returns the settings of a command line without flags.
func newSettings() settings {
	s := settings{healthzPort: healthzPort, metricsPort: metricsPort, ipvsSyncPeriod: 30 * time.Second, ipvsMinimumSync: time.Second}
	setDefaults(&s.KubeProxyConfiguration)
	s.Mode, s.DetectLocalMode = "", "" // which setLateDefaults fills in
	return s
}

// scope is when a flag counts.
type scope int

const (
	// alone: unless there is a file, whose value or default counts then.
	alone scope = iota
	// beside: with a file and without.
	beside
	// over: with a file and without, and over what the file says.
	over
	// never: it is for a mode that is not in use.
	never
)

// flag is one flag of the command line.
type flag struct {
	name string
	// field is what it sets in a KubeProxyConfiguration; empty for a flag
	// that no field stands for.
	field string
	scope scope
	// at returns where the value is kept: a pointer to a type that bind knows,
	// or a pflag.Value.
	at    func(*settings) any
	usage string
}

// flags are kube-proxy's, with the names of cmd/kube-proxy/app/options.go in
// 1.37, --manifests, and our own that begin with nl-.
func flags() []flag {
	return []flag{
		{"config", "", beside, func(s *settings) any { return &s.config }, "read settings from this KubeProxyConfiguration file; most other flags are then ignored"},
		{"write-config-to", "", beside, func(s *settings) any { return &s.writeTo }, "write the configuration to this file instead of running"},
		{"cleanup", "", beside, func(s *settings) any { return &s.cleanup }, "remove the rules of nlproxy, and what kube-proxy leaves in any mode, instead of running"},
		{"init-only", "", beside, func(s *settings) any { return &s.initOnly }, "do what needs all rights, and nothing else; then CAP_NET_ADMIN is enough to run"},
		{"manifests", "", beside, func(s *settings) any { return &s.manifests }, "read objects from the YAML and JSON files of this directory instead of an API server"},
		{"nl-mode", "", beside, func(s *settings) any { return &s.mode }, "mode to serve in, whatever the configuration names: iptables; of its mode, what is the default of nodePortAddresses counts"},
		{"nl-flow-protocols", "", beside, func(s *settings) any { return &s.flowProtocols }, "protocols besides udp, of sctp and tcp, whose flows to endpoints that are gone are deleted"},
		{"master", "", beside, func(s *settings) any { return &s.master }, "URL of the API server, in place of the one in the kubeconfig"},
		{"hostname-override", "hostnameOverride", over, func(s *settings) any { return nodeName{&s.HostnameOverride} }, "name of this node's Node object (default: the host's name)"},
		{"v", "logging.verbosity", over, func(s *settings) any { return logsapi.VerbosityLevelPflag(&s.Logging.Verbosity) }, "log verbosity, 0 or more"},
		{"logging-format", "logging.format", over, func(s *settings) any { return &s.Logging.Format }, "form of log lines: text or json"},
		{"vmodule", "logging.vmodule", over, func(s *settings) any { return logsapi.VModuleConfigurationPflag(&s.Logging.VModule) }, "comma-separated pattern=N: verbosity of the source files whose name without .go matches; for format text"},
		{"log-flush-frequency", "logging.flushFrequency", over, func(s *settings) any { return &s.Logging.FlushFrequency.Duration.Duration }, "most time that a log line stays in a buffer"},
		{"log-text-split-stream", "logging.options.text.splitStream", over, func(s *settings) any { return &s.Logging.Options.Text.SplitStream }, "in format text, write information to standard output; needs the feature gate LoggingAlphaOptions"},
		{"log-text-info-buffer-size", "logging.options.text.infoBufferSize", over, func(s *settings) any { return &s.Logging.Options.Text.InfoBufferSize }, "bytes of information to gather before they are written, with --log-text-split-stream: 512, 4Ki, 1M"},
		{"log-json-split-stream", "logging.options.json.splitStream", over, func(s *settings) any { return &s.Logging.Options.JSON.SplitStream }, "in format json, write information to standard output; needs the feature gate LoggingAlphaOptions"},
		{"log-json-info-buffer-size", "logging.options.json.infoBufferSize", over, func(s *settings) any { return &s.Logging.Options.JSON.InfoBufferSize }, "bytes of information to gather before they are written, with --log-json-split-stream: 512, 4Ki, 1M"},

		{"kubeconfig", "clientConnection.kubeconfig", alone, func(s *settings) any { return &s.ClientConnection.Kubeconfig }, "kubeconfig file (default: the pod's service account)"},
		{"kube-api-content-type", "clientConnection.contentType", alone, func(s *settings) any { return &s.ClientConnection.ContentType }, "media type of requests to the API server"},
		{"kube-api-qps", "clientConnection.qps", alone, func(s *settings) any { return &s.ClientConnection.QPS }, "requests per second to the API server in the long run"},
		{"kube-api-burst", "clientConnection.burst", alone, func(s *settings) any { return &s.ClientConnection.Burst }, "requests to the API server that may come at once"},
		{"config-sync-period", "configSyncPeriod", alone, func(s *settings) any { return &s.ConfigSyncPeriod.Duration }, "how often kube-proxy looks at all objects anew (no effect: all changes are followed as they come)"},

		{"bind-address", "bindAddress", alone, func(s *settings) any { return address{&s.BindAddress, "ip"} }, "the node's primary address, 0.0.0.0 or :: for the Node object's; nothing is bound to it"},
		{"healthz-bind-address", "healthzBindAddress", alone, func(s *settings) any { return address{&s.HealthzBindAddress, "ipport"} }, "address, and port if not 10256, of the health server"},
		{"metrics-bind-address", "metricsBindAddress", alone, func(s *settings) any { return address{&s.MetricsBindAddress, "ipport"} }, "address, and port if not 10249, of the metrics server"},
		{"healthz-port", "", alone, func(s *settings) any { return &s.healthzPort }, "deprecated: port of the health server if --healthz-bind-address has none, 0 for no server"},
		{"metrics-port", "", alone, func(s *settings) any { return &s.metricsPort }, "deprecated: port of the metrics server if --metrics-bind-address has none, 0 for no server"},
		{"bind-address-hard-fail", "bindAddressHardFail", alone, func(s *settings) any { return &s.BindAddressHardFail }, "end if a server cannot listen on its address"},
		{"profiling", "enableProfiling", alone, func(s *settings) any { return &s.EnableProfiling }, "serve /debug/pprof beside the metrics"},
		{"show-hidden-metrics-for-version", "showHiddenMetricsForVersion", alone, func(s *settings) any { return &s.ShowHiddenMetricsForVersion }, "serve metrics that were hidden since this version, which must be the one before: 1.36 (no effect: there are none)"},

		{"proxy-mode", "mode", alone, func(s *settings) any { return (*string)(&s.Mode) }, "shape of the ruleset: iptables"},
		{"cluster-cidr", "clusterCIDR", alone, func(s *settings) any { return &s.ClusterCIDR }, "address range of all pods, or one of each IP family with a comma between; for --detect-local-mode=ClusterCIDR"},
		{"detect-local-mode", "detectLocalMode", alone, func(s *settings) any { return (*string)(&s.DetectLocalMode) }, "how to know traffic of this node's pods: ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix"},
		{"pod-bridge-interface", "detectLocal.bridgeInterface", alone, func(s *settings) any { return &s.DetectLocal.BridgeInterface }, "bridge of the pods; for --detect-local-mode=BridgeInterface"},
		{"pod-interface-name-prefix", "detectLocal.interfaceNamePrefix", alone, func(s *settings) any { return &s.DetectLocal.InterfaceNamePrefix }, "how the names of the pods' interfaces begin; for --detect-local-mode=InterfaceNamePrefix"},
		{"nodeport-addresses", "nodePortAddresses", alone, func(s *settings) any { return &s.NodePortAddresses }, "address ranges of this node on which node ports are served, or primary, localhost or all (default: all)"},
		{"masquerade-all", "iptables.masqueradeAll", alone, func(s *settings) any { return &s.IPTables.MasqueradeAll }, "masquerade all traffic to cluster IPs"},
		{"iptables-masquerade-bit", "iptables.masqueradeBit", alone, func(s *settings) any { return s.IPTables.MasqueradeBit }, "bit of the packet mark that asks for masquerade, 0 to 31"},
		{"iptables-localhost-nodeports", "iptables.localhostNodePorts", alone, func(s *settings) any { return s.IPTables.LocalhostNodePorts }, "serve node ports on 127.0.0.1"},
		{"iptables-min-sync-period", "iptables.minSyncPeriod", alone, func(s *settings) any { return &s.IPTables.MinSyncPeriod.Duration }, "least time between two synchronisations, 0 for none"},
		{"iptables-sync-period", "iptables.syncPeriod", alone, func(s *settings) any { return &s.IPTables.SyncPeriod.Duration }, "most time between two synchronisations"},

		{"ipvs-sync-period", "", never, func(s *settings) any { return &s.ipvsSyncPeriod }, "most time between two synchronisations (not read: for mode ipvs)"},
		{"ipvs-min-sync-period", "", never, func(s *settings) any { return &s.ipvsMinimumSync }, "least time between two synchronisations (not read: for mode ipvs)"},
		{"ipvs-scheduler", "ipvs.scheduler", alone, func(s *settings) any { return &s.IPVS.Scheduler }, "scheduler (not read: for mode ipvs)"},
		{"ipvs-exclude-cidrs", "ipvs.excludeCIDRs", alone, func(s *settings) any { return &s.IPVS.ExcludeCIDRs }, "virtual servers to leave alone (not read: for mode ipvs)"},
		{"ipvs-strict-arp", "ipvs.strictARP", alone, func(s *settings) any { return &s.IPVS.StrictARP }, "set arp_ignore and arp_announce (not read: for mode ipvs)"},
		{"ipvs-tcp-timeout", "ipvs.tcpTimeout", alone, func(s *settings) any { return &s.IPVS.TCPTimeout.Duration }, "timeout of idle TCP connections (not read: for mode ipvs)"},
		{"ipvs-tcpfin-timeout", "ipvs.tcpFinTimeout", alone, func(s *settings) any { return &s.IPVS.TCPFinTimeout.Duration }, "timeout of TCP connections after a FIN (not read: for mode ipvs)"},
		{"ipvs-udp-timeout", "ipvs.udpTimeout", alone, func(s *settings) any { return &s.IPVS.UDPTimeout.Duration }, "timeout of UDP flows (not read: for mode ipvs)"},

		{"conntrack-max-per-core", "conntrack.maxPerCore", alone, func(s *settings) any { return s.Conntrack.MaxPerCore }, "tracked connections per CPU, 0 to leave the limit alone"},
		{"conntrack-min", "conntrack.min", alone, func(s *settings) any { return s.Conntrack.Min }, "least limit of tracked connections, whatever the number of CPUs"},
		{"conntrack-tcp-be-liberal", "conntrack.tcpBeLiberal", alone, func(s *settings) any { return &s.Conntrack.TCPBeLiberal }, "set nf_conntrack_tcp_be_liberal"},
		{"conntrack-tcp-timeout-established", "conntrack.tcpEstablishedTimeout", alone, func(s *settings) any { return &s.Conntrack.TCPEstablishedTimeout.Duration }, "timeout of idle TCP connections, 0 to leave it alone"},
		{"conntrack-tcp-timeout-close-wait", "conntrack.tcpCloseWaitTimeout", alone, func(s *settings) any { return &s.Conntrack.TCPCloseWaitTimeout.Duration }, "timeout of TCP connections in CLOSE_WAIT, 0 to leave it alone"},
		{"conntrack-udp-timeout", "conntrack.udpTimeout", alone, func(s *settings) any { return &s.Conntrack.UDPTimeout.Duration }, "timeout of UDP flows without a reply, 0 to leave it alone"},
		{"conntrack-udp-timeout-stream", "conntrack.udpStreamTimeout", alone, func(s *settings) any { return &s.Conntrack.UDPStreamTimeout.Duration }, "timeout of UDP flows with replies, 0 to leave it alone"},

		{"feature-gates", "featureGates", alone, func(s *settings) any { return cliflag.NewMapStringBool(&s.FeatureGates) }, "comma-separated Name=true or Name=false"},
		{"oom-score-adj", "oomScoreAdj", alone, func(s *settings) any { return s.OOMScoreAdj }, "what to write to /proc/self/oom_score_adj, -1000 to 1000"},
	}
}
