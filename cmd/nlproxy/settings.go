package main

import (
	"fmt"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
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

// newLogger returns a logger to standard error. Verbosity is klog's: from 1 on
// details are logged too.
func newLogger(l config.Logging) (*zap.Logger, error) {
	c := zap.NewProductionConfig()
	c.Sampling = nil
	c.DisableCaller, c.DisableStacktrace = true, true
	c.EncoderConfig.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	c.EncoderConfig.EncodeDuration = zapcore.StringDurationEncoder
	if l.Format == "text" {
		c.Encoding = "console"
	}
	if l.Verbosity > 0 {
		c.Level.SetLevel(zap.DebugLevel)
	}
	log, err := c.Build()
	if err != nil {
		return nil, fmt.Errorf("logging: %w", err)
	}
	return log, nil
}
