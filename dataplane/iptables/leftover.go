package iptables

import (
	"slices"
	"strings"

	"github.com/nlproxy/nlproxy/dataplane/rules"
)

// balancePrefix begins the names of chains in nat for traffic to local
// endpoints, until kube-proxy 1.23; KUBE-EXT- and KUBE-SVL- came after it.
const balancePrefix = "KUBE-XLB-"

// ipvsChains are the chains by table that kube-proxy has in ipvs mode only
// (pkg/proxy/ipvs/proxier.go, Kubernetes 1.37).
var ipvsChains = map[string][]string{
	natTable: {"KUBE-NODE-PORT", "KUBE-LOAD-BALANCER"},
	filterTable: {
		"KUBE-NODE-PORT", "KUBE-SOURCE-RANGES-FIREWALL",
		"KUBE-IPVS-FILTER", "KUBE-IPVS-OUT-FILTER",
	},
}

// Leftover is Classify for what a kube-proxy has left behind, in iptables or in
// ipvs mode, or one of an earlier version. KUBE-MARK-DROP, KUBE-IPTABLES-HINT
// and KUBE-KUBELET-CANARY are the kubelet's, and none of our business.
func Leftover(id rules.ChainID) (rules.Kind, bool) {
	former := id.Table.Name == natTable && strings.HasPrefix(id.Name, balancePrefix)
	if former || slices.Contains(ipvsChains[id.Table.Name], id.Name) {
		return rules.Private, true
	}
	return Classify(id)
}
