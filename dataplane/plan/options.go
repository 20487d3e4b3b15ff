package plan

import (
	"fmt"
	"net/netip"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// DetectMode says how traffic of this node's or the cluster's pods is told
// from other traffic.
type DetectMode uint8

const (
	// DetectNone: it cannot be told.
	DetectNone DetectMode = iota
	// DetectClusterCIDR: by a source address in the cluster's pod range.
	DetectClusterCIDR
	// DetectNodeCIDR: by a source address in this node's pod range.
	DetectNodeCIDR
	// DetectBridge: by the bridge that it comes in through.
	DetectBridge
	// DetectInterfacePrefix: by the start of the name of the interface that
	// it comes in through.
	DetectInterfacePrefix
)

// Detect is how pod traffic is detected.
type Detect struct {
	Mode DetectMode
	// ClusterCIDRs for DetectClusterCIDR; the first of each family counts.
	ClusterCIDRs []netip.Prefix
	// Interface is the bridge's name, or the prefix.
	Interface string
}

// NodePorts says on which of the node's addresses node ports are served.
type NodePorts struct {
	// Prefixes select addresses. A family of which none is given is served on
	// all its addresses.
	Prefixes []netip.Prefix
	// Primary adds the addresses of the Node object.
	Primary bool
	// Localhost serves IPv4 node ports on 127.0.0.0/8 too, as far as Prefixes
	// allow.
	Localhost bool
}

// Counters says which named counters (nfacct objects) the kernel has.
type Counters struct {
	// InvalidDropped counts packets dropped for conntrack state INVALID.
	InvalidDropped bool
	// LocalhostNodePorts counts packets to node ports on loopback addresses.
	LocalhostNodePorts bool
}

// Options are the settings that decisions depend on. The zero value is usable:
// it detects no pod traffic and serves node ports on all addresses but
// loopback ones.
type Options struct {
	// MasqueradeBit is the bit of the packet mark, 0 to 31, that asks for
	// masquerade. The other bits are left as they are.
	MasqueradeBit uint8
	// MasqueradeAll masquerades all traffic to cluster IPs.
	MasqueradeAll bool
	Detect        Detect
	NodePorts     NodePorts
	// NoExternalIPs leaves out the externalIPs of services.
	NoExternalIPs bool
	// DropInvalid drops forwarded packets of conntrack state INVALID, which
	// would leave untranslated. It is to be off where
	// net.netfilter.nf_conntrack_tcp_be_liberal is on.
	DropInvalid bool
	Counters    Counters
}

// Validate names the first field that has no meaning.
func (o Options) Validate() error {
	if o.MasqueradeBit > 31 {
		return fmt.Errorf("MasqueradeBit: %d is not between 0 and 31", o.MasqueradeBit)
	}
	byInterface := o.Detect.Mode == DetectBridge || o.Detect.Mode == DetectInterfacePrefix
	if byInterface && o.Detect.Interface == "" {
		return fmt.Errorf("Detect.Interface: empty")
	}
	return nil
}

// mark returns the mask with the masquerade bit alone.
func (o Options) mark() uint32 { return 1 << o.MasqueradeBit }

// local resolves how pod traffic of family f is detected on node.
func (o Options) local(f model.Family, node model.Node) Local {
	switch o.Detect.Mode {
	case DetectClusterCIDR:
		return firstSource(o.Detect.ClusterCIDRs, f)
	case DetectNodeCIDR:
		return firstSource(node.PodCIDRs, f)
	case DetectBridge:
		return Local{Interface: o.Detect.Interface}
	case DetectInterfacePrefix:
		return Local{Interface: o.Detect.Interface, Prefix: true}
	}
	return Local{}
}

func firstSource(prefixes []netip.Prefix, f model.Family) Local {
	if of := model.PrefixesOfFamily(prefixes, f); len(of) > 0 {
		return Local{Source: of[0].Masked()}
	}
	return Local{}
}
