package config

import (
	"net/netip"
	"time"

	"k8s.io/kube-proxy/config/v1alpha1"
)

// Config is everything that a user can set, checked, with defaults filled in.
// Fields have the names of KubeProxyConfiguration unless said otherwise.
type Config struct {
	// File is the path of the KubeProxyConfiguration that was read, empty for
	// none. A flag only.
	File string
	// WriteConfigTo is where to write this configuration, instead of running;
	// empty to run. A flag only.
	WriteConfigTo string
	// InitOnly asks for what needs more rights than CAP_NET_ADMIN, and nothing
	// else. A flag only.
	InitOnly bool
	// Cleanup asks for all that is ours to be removed, and nothing else. A
	// flag only.
	Cleanup bool

	// Manifests is a directory to read objects from instead of an API server;
	// empty for the API server. A flag only.
	Manifests string
	// Master is the URL of the API server, over the one of the kubeconfig;
	// empty for none. A flag only.
	Master           string
	ClientConnection ClientConnection

	Mode Mode
	// HostnameOverride is the name of this node's Node object, in lower case
	// and trimmed; empty for the host's name.
	HostnameOverride string
	// BindAddress is this node's primary address; unspecified (0.0.0.0 or ::)
	// for the one of the Node object. Nothing is bound to it.
	BindAddress netip.Addr

	DetectLocal       DetectLocal
	NodePortAddresses NodePortAddresses

	// MasqueradeBit is the bit of the packet mark that stands for "masquerade
	// this", 0 to 31.
	MasqueradeBit uint8
	// MasqueradeAll masquerades all traffic to cluster IPs.
	MasqueradeAll bool
	// LocalhostNodePorts serves node ports on 127.0.0.0/8 where
	// NodePortAddresses admits it.
	LocalhostNodePorts bool
	// AllowServiceExternalIPs is the feature gate of that name: whether
	// externalIPs of services are served. True unless switched off.
	AllowServiceExternalIPs bool

	// MinSyncPeriod is the least time between two synchronisations; 0 or more,
	// and no more than SyncPeriod.
	MinSyncPeriod time.Duration
	// SyncPeriod is the most time between two; more than 0.
	SyncPeriod time.Duration

	Conntrack Conntrack
	// FlowProtocols are the protocols besides UDP, "sctp" and "tcp", whose
	// flows to endpoints that are gone are deleted. A flag only.
	FlowProtocols []string

	// HealthzBindAddress and MetricsBindAddress are where the two servers
	// listen; one that is not valid stands for no server.
	HealthzBindAddress netip.AddrPort
	MetricsBindAddress netip.AddrPort
	// BindAddressHardFail ends the process if a server cannot listen.
	BindAddressHardFail bool
	// EnableProfiling serves /debug/pprof beside the metrics.
	EnableProfiling bool
	// ComponentStatusz and ComponentFlagz are the feature gates of those names:
	// whether /statusz and /flagz are served beside the metrics. True unless
	// switched off.
	ComponentStatusz, ComponentFlagz bool
	// OOMScoreAdj is what to write to /proc/self/oom_score_adj, -1000 to 1000.
	OOMScoreAdj int

	Logging Logging

	published v1alpha1.KubeProxyConfiguration
	flags     map[string]string
}

// Mode is a shape of the ruleset.
type Mode string

// ModeIPTables is the KUBE-* chains of kube-proxy's mode iptables.
const ModeIPTables Mode = "iptables"

// ClientConnection is how to talk to the API server.
type ClientConnection struct {
	// Kubeconfig is the path of a kubeconfig file. If it and Master are empty,
	// the service account of the pod counts.
	Kubeconfig string
	// AcceptContentTypes and ContentType are media types for the client's
	// requests; the first is empty for the client's default.
	AcceptContentTypes string
	ContentType        string
	// QPS is requests per second in the long run, negative for no limit, and
	// Burst how many may come at once, 0 or more.
	QPS   float32
	Burst int
}

// DetectLocal tells traffic of this node's pods from other traffic.
type DetectLocal struct {
	Mode DetectLocalMode
	// ClusterCIDRs are the addresses of all pods in DetectLocalByClusterCIDR:
	// none, or at most one range of each family. Empty in any other mode.
	ClusterCIDRs []netip.Prefix
	// BridgeInterface is the bridge of the pods in DetectLocalByBridge, 1 to
	// 15 bytes.
	BridgeInterface string
	// InterfaceNamePrefix is how the names of the pods' interfaces begin in
	// DetectLocalByPrefix, 1 to 15 bytes.
	InterfaceNamePrefix string
}

// DetectLocalMode is a way to know the traffic of this node's pods.
type DetectLocalMode string

// The ways to know it, with kube-proxy's values.
const (
	DetectLocalByClusterCIDR DetectLocalMode = "ClusterCIDR"
	DetectLocalByNodeCIDR    DetectLocalMode = "NodeCIDR"
	DetectLocalByBridge      DetectLocalMode = "BridgeInterface"
	DetectLocalByPrefix      DetectLocalMode = "InterfaceNamePrefix"
)

// NodePortAddresses selects the addresses of this node on which node ports are
// served. The zero value means all. A family without any prefix of its own is
// served on all its addresses, whatever the other has.
type NodePortAddresses struct {
	// Prefixes are masked, in the order given, with the keywords localhost and
	// all replaced by the prefixes they stand for.
	Prefixes []netip.Prefix
	// Primary adds the node's own address of each family. It stands beside
	// Prefixes since it is not known before the Node object is.
	Primary bool
}

// Conntrack is what to set in the kernel's connection tracking. A zero leaves
// the kernel's value alone; all are 0 or more.
type Conntrack struct {
	// MaxPerCore is entries per CPU and Min the least in all; Min counts only
	// if MaxPerCore is not 0.
	MaxPerCore int
	Min        int
	// TCPBeLiberal sets nf_conntrack_tcp_be_liberal.
	TCPBeLiberal bool
	// Timeouts of idle entries.
	TCPEstablishedTimeout time.Duration
	TCPCloseWaitTimeout   time.Duration
	UDPTimeout            time.Duration
	UDPStreamTimeout      time.Duration
}

// Logging is how much is logged, in which form and to where.
type Logging struct {
	// Format is "text" or "json".
	Format string
	// Verbosity is klog's level, 0 or more.
	Verbosity int
	// VModule are other levels for some source files, the first that matches
	// one counting. Empty unless Format is "text".
	VModule []VModule
	// FlushFrequency is the most time that an entry may stay in a buffer; more
	// than 0.
	FlushFrequency time.Duration
	// SplitStream sends warnings and errors to standard error and all else to
	// standard output, of which InfoBufferSize bytes, 0 or more, are gathered
	// first. Otherwise all goes to standard error.
	SplitStream    bool
	InfoBufferSize int64
}

// VModule is the verbosity of the source files that match a pattern, where it
// is higher than the general one.
type VModule struct {
	// FilePattern is one of path.Match for the name of a file, without its
	// folder and without ".go". It is not empty.
	FilePattern string
	Verbosity   int
}
