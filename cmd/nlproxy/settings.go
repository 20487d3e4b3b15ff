package main

import (
	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/nlproxy/nlproxy/conntrack"
	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"go.uber.org/zap"
)

// detectModes says in plan's words what the configuration says in kube-proxy's.
var detectModes = map[config.DetectLocalMode]plan.DetectMode{
	config.DetectLocalByClusterCIDR: plan.DetectClusterCIDR,
	config.DetectLocalByNodeCIDR:    plan.DetectNodeCIDR,
	config.DetectLocalByBridge:      plan.DetectBridge,
	config.DetectLocalByPrefix:      plan.DetectInterfacePrefix,
}

// planOptions returns what decisions depend on. counters are the named
// counters that the kernel has; liberal says that it tolerates packets outside
// their connection's window.
func planOptions(c config.Config, counters map[string]bool, liberal bool) plan.Options {
	return plan.Options{
		MasqueradeBit: c.MasqueradeBit,
		MasqueradeAll: c.MasqueradeAll,
		Detect: plan.Detect{
			Mode:         detectModes[c.DetectLocal.Mode],
			ClusterCIDRs: c.DetectLocal.ClusterCIDRs,
			Interface:    c.DetectLocal.BridgeInterface + c.DetectLocal.InterfaceNamePrefix,
		},
		NodePorts: plan.NodePorts{
			Prefixes:  c.NodePortAddresses.Prefixes,
			Primary:   c.NodePortAddresses.Primary,
			Localhost: c.LocalhostNodePorts,
		},
		NoExternalIPs: !c.AllowServiceExternalIPs,
		DropInvalid:   !liberal,
		Counters: plan.Counters{
			InvalidDropped:     counters[iptables.InvalidDropped],
			LocalhostNodePorts: counters[iptables.LocalhostNodePorts],
		},
	}
}

// hooks are told of what a dataplane does; nil ones are not.
type hooks struct {
	report    func(dataplane.Report)
	committed func([]plan.Plan, model.Node)
}

// newDataplane prepares the kernel and what programs it. The first rule may be
// what loads connection tracking, so limits are looked at after each write too.
func newDataplane(c config.Config, conn *kernel.Conn, limits *conntrack.Applier, h hooks, log *zap.Logger) (*dataplane.Dataplane, error) {
	limits.Apply()
	counters, err := ensureCounters(conn)
	if err != nil {
		log.Warn("packets are not counted by name", zap.Error(err))
	}
	return dataplane.New(dataplane.Options{
		Reader:        conn,
		Writer:        conn,
		Plan:          planOptions(c, counters, limits.Liberal()),
		RouteLocalnet: setRouteLocalnet,
		Logger:        log,
		Committed: func(plans []plan.Plan, node model.Node) {
			limits.Apply()
			if h.committed != nil {
				h.committed(plans, node)
			}
		},
		Observer: h.report,
	})
}

func ensureCounters(conn *kernel.Conn) (map[string]bool, error) {
	names, err := conn.EnsureCounters([]string{iptables.InvalidDropped, iptables.LocalhostNodePorts})
	have := make(map[string]bool, len(names))
	for _, name := range names {
		have[name] = true
	}
	return have, err
}
