package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kube-proxy/config/v1alpha1"
)

// settings is where flags are kept until they are checked.
type settings struct {
	v1alpha1.KubeProxyConfiguration
	config, manifests, master string
	flowProtocols             []string
}

// flag is one flag of the command line.
type flag struct {
	name string
	// field is what it sets in a KubeProxyConfiguration; empty for a flag
	// that no field stands for, which counts beside a file as well.
	field string
	// overrides is whether it counts over the field of a file.
	overrides bool
	// at returns where the value is kept: a pointer to a type that bind knows,
	// or a pflag.Value.
	at    func(*settings) any
	usage string
}

// flags are kube-proxy's, with the names of cmd/kube-proxy/app/options.go in
// 1.37, --manifests, and our own that begin with nl-.
func flags() []flag {
	return []flag{
		{"config", "", false, func(s *settings) any { return &s.config }, "read settings from this KubeProxyConfiguration file; most other flags are then ignored"},
		{"manifests", "", false, func(s *settings) any { return &s.manifests }, "read objects from the YAML and JSON files of this directory instead of an API server"},
		{"nl-flow-protocols", "", false, func(s *settings) any { return &s.flowProtocols }, "protocols besides udp, of sctp and tcp, whose flows to endpoints that are gone are deleted"},
		{"master", "", false, func(s *settings) any { return &s.master }, "URL of the API server, in place of the one in the kubeconfig"},
		{"hostname-override", "hostnameOverride", true, func(s *settings) any { return &s.HostnameOverride }, "name of this node's Node object (default: the host's name)"},
		{"v", "logging.verbosity", true, func(s *settings) any { return logsapi.VerbosityLevelPflag(&s.Logging.Verbosity) }, "log verbosity, 0 or more"},
		{"logging-format", "logging.format", true, func(s *settings) any { return &s.Logging.Format }, "form of log lines: text or json"},

		{"kubeconfig", "clientConnection.kubeconfig", false, func(s *settings) any { return &s.ClientConnection.Kubeconfig }, "kubeconfig file (default: the pod's service account)"},
		{"kube-api-content-type", "clientConnection.contentType", false, func(s *settings) any { return &s.ClientConnection.ContentType }, "media type of requests to the API server"},
		{"kube-api-qps", "clientConnection.qps", false, func(s *settings) any { return &s.ClientConnection.QPS }, "requests per second to the API server in the long run"},
		{"kube-api-burst", "clientConnection.burst", false, func(s *settings) any { return &s.ClientConnection.Burst }, "requests to the API server that may come at once"},
		{"config-sync-period", "configSyncPeriod", false, func(s *settings) any { return &s.ConfigSyncPeriod.Duration }, "how often all objects are looked at anew"},

		{"bind-address", "bindAddress", false, func(s *settings) any { return &s.BindAddress }, "the node's primary address, 0.0.0.0 or :: for the Node object's; nothing is bound to it"},
		{"healthz-bind-address", "healthzBindAddress", false, func(s *settings) any { return &s.HealthzBindAddress }, "address, and port if not 10256, of the health server"},
		{"metrics-bind-address", "metricsBindAddress", false, func(s *settings) any { return &s.MetricsBindAddress }, "address, and port if not 10249, of the metrics server"},

		{"proxy-mode", "mode", false, func(s *settings) any { return (*string)(&s.Mode) }, "shape of the ruleset: iptables"},
		{"cluster-cidr", "clusterCIDR", false, func(s *settings) any { return &s.ClusterCIDR }, "address range of all pods, or one of each IP family with a comma between; for --detect-local-mode=ClusterCIDR"},
		{"detect-local-mode", "detectLocalMode", false, func(s *settings) any { return (*string)(&s.DetectLocalMode) }, "how to know traffic of this node's pods: ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix"},
		{"pod-bridge-interface", "detectLocal.bridgeInterface", false, func(s *settings) any { return &s.DetectLocal.BridgeInterface }, "bridge of the pods; for --detect-local-mode=BridgeInterface"},
		{"pod-interface-name-prefix", "detectLocal.interfaceNamePrefix", false, func(s *settings) any { return &s.DetectLocal.InterfaceNamePrefix }, "how the names of the pods' interfaces begin; for --detect-local-mode=InterfaceNamePrefix"},
		{"nodeport-addresses", "nodePortAddresses", false, func(s *settings) any { return &s.NodePortAddresses }, "address ranges of this node on which node ports are served, or primary, localhost or all (default: all)"},
		{"masquerade-all", "iptables.masqueradeAll", false, func(s *settings) any { return &s.IPTables.MasqueradeAll }, "masquerade all traffic to cluster IPs"},
		{"iptables-masquerade-bit", "iptables.masqueradeBit", false, func(s *settings) any { return s.IPTables.MasqueradeBit }, "bit of the packet mark that asks for masquerade, 0 to 31"},
		{"iptables-localhost-nodeports", "iptables.localhostNodePorts", false, func(s *settings) any { return s.IPTables.LocalhostNodePorts }, "serve node ports on 127.0.0.1"},
		{"iptables-min-sync-period", "iptables.minSyncPeriod", false, func(s *settings) any { return &s.IPTables.MinSyncPeriod.Duration }, "least time between two synchronisations, 0 for none"},
		{"iptables-sync-period", "iptables.syncPeriod", false, func(s *settings) any { return &s.IPTables.SyncPeriod.Duration }, "most time between two synchronisations"},

		{"conntrack-max-per-core", "conntrack.maxPerCore", false, func(s *settings) any { return s.Conntrack.MaxPerCore }, "tracked connections per CPU, 0 to leave the limit alone"},
		{"conntrack-min", "conntrack.min", false, func(s *settings) any { return s.Conntrack.Min }, "least limit of tracked connections, whatever the number of CPUs"},
		{"conntrack-tcp-be-liberal", "conntrack.tcpBeLiberal", false, func(s *settings) any { return &s.Conntrack.TCPBeLiberal }, "set nf_conntrack_tcp_be_liberal"},
		{"conntrack-tcp-timeout-established", "conntrack.tcpEstablishedTimeout", false, func(s *settings) any { return &s.Conntrack.TCPEstablishedTimeout.Duration }, "timeout of idle TCP connections, 0 to leave it alone"},
		{"conntrack-tcp-timeout-close-wait", "conntrack.tcpCloseWaitTimeout", false, func(s *settings) any { return &s.Conntrack.TCPCloseWaitTimeout.Duration }, "timeout of TCP connections in CLOSE_WAIT, 0 to leave it alone"},
		{"conntrack-udp-timeout", "conntrack.udpTimeout", false, func(s *settings) any { return &s.Conntrack.UDPTimeout.Duration }, "timeout of UDP flows without a reply, 0 to leave it alone"},
		{"conntrack-udp-timeout-stream", "conntrack.udpStreamTimeout", false, func(s *settings) any { return &s.Conntrack.UDPStreamTimeout.Duration }, "timeout of UDP flows with replies, 0 to leave it alone"},

		{"feature-gates", "featureGates", false, func(s *settings) any { return cliflag.NewMapStringBool(&s.FeatureGates) }, "comma-separated Name=true or Name=false"},
		{"oom-score-adj", "oomScoreAdj", false, func(s *settings) any { return s.OOMScoreAdj }, "what to write to /proc/self/oom_score_adj, -1000 to 1000"},
	}
}

// Flags holds the flags of one command line.
type Flags struct {
	set  *pflag.FlagSet
	into settings
}

// Bind defines the flags on fs, which must have none of their names yet.
// Config is to be called after fs has parsed its arguments. As with
// kube-proxy, a name may be written with underscores for hyphens.
func Bind(fs *pflag.FlagSet) *Flags {
	f := &Flags{set: fs}
	setDefaults(&f.into.KubeProxyConfiguration)
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	bind(fs, &f.into)
	return f
}

func bind(fs *pflag.FlagSet, s *settings) {
	for _, f := range flags() {
		switch at := f.at(s).(type) {
		case *string:
			fs.StringVar(at, f.name, *at, f.usage)
		case *bool:
			fs.BoolVar(at, f.name, *at, f.usage)
		case *int32:
			fs.Int32Var(at, f.name, *at, f.usage)
		case *float32:
			fs.Float32Var(at, f.name, *at, f.usage)
		case *time.Duration:
			fs.DurationVar(at, f.name, *at, f.usage)
		case *[]string:
			fs.StringSliceVar(at, f.name, *at, f.usage)
		case pflag.Value:
			fs.VarP(at, f.name, shorthand(f.name), f.usage)
		}
	}
}

// shorthand makes "-v" of "v".
func shorthand(name string) string {
	if len(name) > 1 {
		return ""
	}
	return name
}

// Config returns what the flags say or, with --config, what the file says,
// which read returns the content of. Of the other flags only those without a
// field, and those that kube-proxy lets override a file, count beside a file.
//
// Notes are one line each, to be logged. The error holds one line for every
// problem.
func (f *Flags) Config(read func(name string) ([]byte, error)) (c Config, notes []string, err error) {
	if f.into.config == "" {
		c, notes, err = f.fromFlags()
	} else {
		c, notes, err = f.fromFile(read)
	}
	c.File = f.into.config
	c.Master, c.Manifests, c.FlowProtocols = f.into.master, f.into.manifests, f.into.flowProtocols
	return c, notes, errors.Join(err, checkFlowProtocols(c.FlowProtocols))
}

// checkFlowProtocols is an error for each that is none.
func checkFlowProtocols(names []string) error {
	var errs []error
	for _, name := range names {
		if name != "udp" && name != "sctp" && name != "tcp" {
			errs = append(errs, fmt.Errorf("--nl-flow-protocols: %q: must be of udp, sctp, tcp", name))
		}
	}
	return errors.Join(errs...)
}

func (f *Flags) fromFlags() (Config, []string, error) {
	o := f.into.KubeProxyConfiguration
	setLateDefaults(&o)
	var ps problems
	c := check(&o, &ps)
	return c, notes(&o), ps.onCommandLine()
}

func (f *Flags) fromFile(read func(string) ([]byte, error)) (Config, []string, error) {
	data, err := read(f.into.config)
	if err != nil {
		return Config{}, nil, fmt.Errorf("read --config: %w", err)
	}
	o, lines, ps, err := decode(data)
	if err != nil {
		return Config{}, nil, fmt.Errorf("%s: %w", f.into.config, err)
	}
	setDefaults(&o)
	ignored := f.override(&o, &ps)
	c := check(&o, &ps)
	return c, append(ignored, notes(&o)...), ps.inFile(f.into.config, lines)
}

// override copies to o the flags that count over a file, and returns a note
// for each that was given and does not.
func (f *Flags) override(o *v1alpha1.KubeProxyConfiguration, ps *problems) (ignored []string) {
	file := settings{KubeProxyConfiguration: *o}
	over := pflag.NewFlagSet("", pflag.ContinueOnError)
	bind(over, &file)
	for _, row := range flags() {
		given := f.set.Lookup(row.name)
		switch {
		case row.field == "" || !given.Changed:
		case !row.overrides:
			ignored = append(ignored, fmt.Sprintf("--%s: ignored beside --config", row.name))
		case given.Value.String() != "":
			// Cannot fail: the value is one that a flag of the same type gave.
			if err := over.Set(row.name, given.Value.String()); err != nil {
				ps.add(row.field, "%v", err)
			}
		}
	}
	*o = file.KubeProxyConfiguration
	return ignored
}
