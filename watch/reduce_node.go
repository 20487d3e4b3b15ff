package watch

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// seenNode is what matters of a Node: the facts that rules depend on, and those
// that only load balancers are told of.
type seenNode struct {
	model.Node
	leaving bool // it is being deleted, or about to be
}

// taintToBeDeleted is what the cluster autoscaler marks a node with that it is
// about to take away. Kube-proxy looks for the key alone
// (pkg/proxy/healthcheck/proxy_health.go, Kubernetes 1.37).
const taintToBeDeleted = "ToBeDeletedByClusterAutoscaler"

// reduceNode returns what matters of a Node; its interfaces' addresses are not
// in the object.
func reduceNode(node *corev1.Node) (*seenNode, []Problem) {
	f := &findings{object: object{kindNode, model.Name{Name: node.Name}}}
	addrs := nodeAddresses(node.Status.Addresses, f)
	if len(addrs) == 0 {
		f.add("status.addresses", "has no IP address; those known before, if any, stay in force")
	}
	return &seenNode{
		Node: model.Node{
			Name:      node.Name,
			Zone:      node.Labels[corev1.LabelTopologyZone],
			Addresses: addrs,
			PodCIDRs:  podCIDRs(node.Spec.PodCIDRs, f),
		},
		leaving: leaving(node),
	}, f.list
}

func leaving(node *corev1.Node) bool {
	return !node.DeletionTimestamp.IsZero() ||
		slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintToBeDeleted })
}

// nodeAddresses returns the first address and the first one of the other
// family, internal ones before external ones, as GetNodeHostIPs does
// (pkg/util/node/node.go, Kubernetes 1.37).
func nodeAddresses(list []corev1.NodeAddress, f *findings) []netip.Addr {
	var addrs []netip.Addr
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
		for i, na := range list {
			if na.Type != kind {
				continue
			}
			a, err := parseAddr(na.Address)
			if err != nil {
				f.add(fmt.Sprintf("status.addresses[%d].address", i), "%v", err)
				continue
			}
			if len(model.OfFamily(addrs, model.FamilyOf(a))) == 0 {
				addrs = append(addrs, a)
			}
		}
	}
	return addrs
}

func podCIDRs(list []string, f *findings) []netip.Prefix {
	var prefixes []netip.Prefix
	for i, s := range list {
		field := fmt.Sprintf("spec.podCIDRs[%d]", i)
		p, err := parsePrefix(s)
		if err != nil {
			f.add(field, "%v", err)
			continue
		}
		family := model.FamilyOf(p.Addr())
		if len(model.PrefixesOfFamily(prefixes, family)) > 0 {
			f.add(field, "%s is a second %v range", p, family)
			continue
		}
		prefixes = append(prefixes, p)
	}
	return prefixes
}
