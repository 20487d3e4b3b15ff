package watch

import (
	"fmt"
	"net/netip"

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

func (f *facts) putNode(n seenNode) {
	n.Local = f.node.Local
	f.host = false
	f.nodeErr = f.incomplete(n.Node)
	f.eligible.Store(!n.leaving)
	f.swapNode(n.Node)
}

// putHost makes this node one without a Node object: a name, and what its
// interfaces tell. Without an address it is complete all the same: a host
// whose link is down serves what it can.
func (f *facts) putHost(name string) {
	f.putNode(seenNode{Node: model.Node{Name: name, Addresses: hostAddresses(f.node.Local)}})
	f.host = true
	if !f.needPodCIDRs {
		f.nodeErr = nil
	}
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

func (f *facts) incomplete(n model.Node) error {
	switch {
	case len(n.Addresses) == 0:
		return fmt.Errorf("%w: node %s has no address", ErrNoNode, n.Name)
	case f.needPodCIDRs && len(n.PodCIDRs) == 0:
		return fmt.Errorf("%w: node %s has no pod CIDR", ErrNoNode, n.Name)
	}
	return nil
}

// nodeState returns why this node is not known, if it is not, and a channel that
// is closed when that may have changed.
func (f *facts) nodeState() (<-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nodeNews, f.nodeErr
}
