package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/sysctl"
)

// nodeProblems says what of the configuration does not fit this node, as
// kube-proxy does once it knows its node (checkBadConfig, checkBadIPConfig and
// newProxyServer in cmd/kube-proxy/app/server.go, Kubernetes 1.37): warnings, or
// an error where rules would be wrong.
func nodeProblems(c config.Config, n model.Node) (warnings []string, fatal error) {
	return newFit(c, n, ipv6Off(sysctl.Tree{}, "/proc/net/if_inet6")).problems()
}

// ipv6Off reports whether this host has no IPv6 at all: the kernel has not, or
// it is switched off on every interface.
func ipv6Off(settings sysctl.Tree, interfaces string) bool {
	if _, err := os.Stat(interfaces); errors.Is(err, fs.ErrNotExist) {
		return true
	}
	off, err := settings.Read("net/ipv6/conf/all/disable_ipv6")
	return err == nil && off == "1"
}

// fit is a configuration beside the node that it is for.
type fit struct {
	config  config.Config
	node    model.Node // with the bind address in it
	primary model.Family
	single  bool           // the host has IPv4 alone
	ports   []netip.Prefix // where node ports are served; none for everywhere
}

func newFit(c config.Config, n model.Node, ipv6Off bool) fit {
	n = bound(n, c.BindAddress)
	f := fit{config: c, node: n, primary: n.Primary(), single: ipv6Off, ports: slices.Clone(c.NodePortAddresses.Prefixes)}
	if c.NodePortAddresses.Primary {
		for _, a := range n.Addresses {
			if !a.IsLoopback() {
				f.ports = append(f.ports, netip.PrefixFrom(a, a.BitLen()))
			}
		}
	}
	return f
}

func (f fit) problems() (warnings []string, fatal error) {
	if f.primary == model.IPv6 && f.single {
		return nil, fmt.Errorf("this node's address is %v, and this host has no IPv6", f.node.Address(model.IPv6))
	}
	detect := f.config.DetectLocal
	clusterWide := f.foreign("clusterCIDR (--cluster-cidr)", detect.ClusterCIDRs)
	if clusterWide != "" && detect.Mode == config.DetectLocalByClusterCIDR && f.single {
		return nil, errors.New(clusterWide)
	}
	ofNode := f.foreign("spec.podCIDRs of this node", f.node.PodCIDRs)
	if ofNode != "" && detect.Mode == config.DetectLocalByNodeCIDR {
		return nil, errors.New(ofNode)
	}
	for _, w := range []string{
		f.nodePorts(), clusterWide, ofNode,
		f.server("healthzBindAddress", f.config.HealthzBindAddress),
		f.server("metricsBindAddress", f.config.MetricsBindAddress),
	} {
		if w != "" {
			warnings = append(warnings, w)
		}
	}
	return warnings, nil
}

// cluster is what this node lets one think of the cluster.
func (f fit) cluster() string {
	if f.single {
		return fmt.Sprintf("this node has %v alone", f.primary)
	}
	return fmt.Sprintf("this node has %v first", f.primary)
}

// foreign complains of ranges that are all of the family that is not this
// node's primary one.
func (f fit) foreign(name string, ranges []netip.Prefix) string {
	if len(ranges) == 0 || len(model.PrefixesOfFamily(ranges, f.primary)) > 0 {
		return ""
	}
	return fmt.Sprintf("%s: %v: %s, and of that family there is no range", name, ranges, f.cluster())
}

// nodePorts complains of node ports that are served where that may not be meant.
// That they are served everywhere by default, which kube-proxy calls a problem at
// each start, is what everybody expects.
func (f fit) nodePorts() string {
	const name = "nodePortAddresses (--nodeport-addresses)"
	everywhere := func(of model.Family) string {
		return fmt.Sprintf("%s: %v: node ports are served on all %v addresses of this node", name, f.ports, of)
	}
	primary := model.PrefixesOfFamily(f.ports, f.primary)
	switch {
	case len(f.ports) == 0 && !f.config.NodePortAddresses.Primary:
		return ""
	case len(f.ports) == 0:
		return name + ": selects no address: node ports are served on all addresses of this node"
	case len(primary) == 0:
		return everywhere(f.primary)
	case len(primary) == len(f.ports) && f.dual():
		return everywhere(other(f.primary))
	}
	return ""
}

// dual reports whether anything speaks of both families.
func (f fit) dual() bool {
	return slices.ContainsFunc([][]netip.Prefix{f.config.DetectLocal.ClusterCIDRs, f.node.PodCIDRs}, func(ranges []netip.Prefix) bool {
		return len(model.PrefixesOfFamily(ranges, model.IPv4)) > 0 && len(model.PrefixesOfFamily(ranges, model.IPv6)) > 0
	})
}

func other(f model.Family) model.Family {
	if f == model.IPv4 {
		return model.IPv6
	}
	return model.IPv4
}

// server complains of an address of a family that this host does not have.
func (f fit) server(name string, a netip.AddrPort) string {
	if !f.single || !a.IsValid() || a.Addr().IsUnspecified() || model.FamilyOf(a.Addr()) == f.primary {
		return ""
	}
	return fmt.Sprintf("%s: %v: %s", name, a, f.cluster())
}
