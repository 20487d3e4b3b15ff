package config

import (
	"net/netip"
	"strings"

	"k8s.io/kube-proxy/config/v1alpha1"
)

// maxInterfaceName is the longest name of an interface in bytes: IFNAMSIZ in
// linux/if.h (6.18) is 16 with the closing zero.
const maxInterfaceName = 15

// detectLocal reads what belongs to the chosen mode, and nothing of the
// others: kube-proxy neither checks nor uses that.
func detectLocal(o *v1alpha1.KubeProxyConfiguration, fs *findings) DetectLocal {
	d := DetectLocal{Mode: DetectLocalMode(o.DetectLocalMode)}
	switch d.Mode {
	case DetectLocalByNodeCIDR:
	case DetectLocalByClusterCIDR:
		d.ClusterCIDRs = clusterCIDRs(o.ClusterCIDR, fs)
	case DetectLocalByBridge:
		d.BridgeInterface = interfaceName("detectLocal.bridgeInterface", o.DetectLocal.BridgeInterface, d.Mode, fs)
	case DetectLocalByPrefix:
		d.InterfaceNamePrefix = interfaceName("detectLocal.interfaceNamePrefix", o.DetectLocal.InterfaceNamePrefix, d.Mode, fs)
	default:
		fs.refuse("detectLocalMode", "%q: must be %s, %s, %s or %s", d.Mode,
			DetectLocalByClusterCIDR, DetectLocalByNodeCIDR, DetectLocalByBridge, DetectLocalByPrefix)
	}
	return d
}

func interfaceName(field, name string, mode DetectLocalMode, fs *findings) string {
	if name == "" || len(name) > maxInterfaceName {
		fs.refuse(field, "%q: must be of 1 to %d bytes in detectLocalMode %s", name, maxInterfaceName, mode)
	}
	return name
}

func clusterCIDRs(list string, fs *findings) []netip.Prefix {
	if list == "" {
		return nil
	}
	var prefixes []netip.Prefix
	for _, s := range strings.Split(list, ",") {
		p, ok := parsePrefix(s)
		if !ok {
			fs.refuse("clusterCIDR", "%q: must be an address range such as 10.244.0.0/16 or fd00:244::/56", s)
			continue
		}
		for _, other := range prefixes {
			if other.Addr().Is4() == p.Addr().Is4() {
				fs.refuse("clusterCIDR", "%q: must be one range, or one of each IP family with a comma between", list)
				return nil
			}
		}
		prefixes = append(prefixes, p)
	}
	return prefixes
}
