package watch

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// setNode makes n what is known of this node, its local addresses aside.
func (f *facts) setNode(n seenNode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.putNode(n)
}

// loseNode keeps the node as it is, though not eligible, and err as the reason
// why it may be wrong.
func (f *facts) loseNode(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodeErr = err
	f.eligible.Store(false)
}

// setLocal makes addrs the addresses of the node's interfaces.
func (f *facts) setLocal(addrs []netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.node
	n.Local = addrs
	if f.host {
		n.Addresses = hostAddresses(addrs)
	}
	f.swapNode(n)
}

// putNode makes n what is known of this node. What it lacks for now, as a Node
// does that was made anew, stays as it was: without its addresses node ports
// would be served on too many, and without its pod CIDR pods taken for others.
func (f *facts) putNode(n seenNode) {
	n.Local = f.node.Local
	f.nodeErr = f.incomplete(n.Node)
	f.eligible.Store(!n.leaving)
	n.Node = f.completed(n.Node)
	f.host = false
	f.swapNode(n.Node)
}

// putHost makes this node one without a Node object: a name, and what its
// interfaces tell. Without an address it is complete all the same: a host
// whose link is down serves what it can.
func (f *facts) putHost(name string) {
	f.nodeErr = nil
	if f.needPodCIDRs {
		f.nodeErr = nodeError{name: name, lacks: lacksPodCIDR}
	}
	f.eligible.Store(true)
	f.host = true
	f.swapNode(model.Node{Name: name, Addresses: hostAddresses(f.node.Local), Local: f.node.Local})
}

func (f *facts) swapNode(n model.Node) {
	close(f.nodeNews)
	f.nodeNews = make(chan struct{})
	if f.node.Equal(n) {
		return
	}
	f.node = n
	f.signal()
}

// hostAddresses returns the first address of each family by which others can
// reach this host.
func hostAddresses(local []netip.Addr) []netip.Addr {
	var addrs []netip.Addr
	for _, family := range model.Families {
		for _, a := range model.OfFamily(local, family) {
			if a.IsGlobalUnicast() {
				addrs = append(addrs, a)
				break
			}
		}
	}
	return addrs
}

// reduceNode is reduceNode that misses the pod CIDRs, too, if they are needed.
func (f *facts) reduceNode(node *corev1.Node) (*seenNode, []Problem) {
	n, problems := reduceNode(node)
	if f.needPodCIDRs && len(n.PodCIDRs) == 0 {
		missing := findings{object: object{kindNode, model.Name{Name: n.Name}}}
		missing.add("spec.podCIDRs", "has no range; those known before, if any, stay in force")
		problems = append(problems, missing.list...)
	}
	return n, problems
}

// completed returns n with what it lacks as it was before.
func (f *facts) completed(n model.Node) model.Node {
	if f.host || n.Name != f.node.Name {
		return n
	}
	if len(n.Addresses) == 0 {
		n.Addresses = f.node.Addresses
	}
	if f.needPodCIDRs && len(n.PodCIDRs) == 0 {
		n.PodCIDRs = f.node.PodCIDRs
	}
	return n
}

func (f *facts) incomplete(n model.Node) error {
	var l lack
	if len(n.Addresses) == 0 {
		l |= lacksAddress
	}
	if f.needPodCIDRs && len(n.PodCIDRs) == 0 {
		l |= lacksPodCIDR
	}
	if l == 0 {
		return nil
	}
	return nodeError{name: n.Name, lacks: l}
}

// nodeState returns why this node is not known, if it is not, and a channel that
// is closed when that may have changed.
func (f *facts) nodeState() (<-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nodeNews, f.nodeErr
}
