package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"time"

	"github.com/nlproxy/nlproxy/conntrack"
	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/nlproxy/nlproxy/watch/addr"
)

// serviceNames tells services by their frontends, as the kernel's rules name
// them.
type serviceNames struct {
	kernel    *kernel.Conn
	local     *addr.Follower
	frontends map[iptables.Destination]model.PortName

	// generation is that of the rules that were read, checked when it was last
	// asked for.
	generation uint32
	checked    time.Time
}

// newServiceNames reads the rules. The addresses of this host are followed until
// ctx is done.
func newServiceNames(ctx context.Context) (*serviceNames, error) {
	conn, err := kernel.Dial(kernel.Options{})
	if err != nil {
		return nil, err
	}
	n := &serviceNames{kernel: conn}
	if n.local, err = addr.Follow(ctx, addr.Options{}); err != nil {
		return nil, errors.Join(fmt.Errorf("addresses of this host: %w", err), conn.Close())
	}
	if err := n.refresh(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return n, nil
}

func (n *serviceNames) close() error { return n.kernel.Close() }

// recheck is how often the kernel is asked whether rules have changed.
const recheck = time.Second

// refresh reads the rules again if they have changed, but does not look more
// often than once in a second. After an error the names are as they were.
func (n *serviceNames) refresh() error {
	if time.Since(n.checked) < recheck {
		return nil
	}
	n.checked = time.Now()
	generation, err := n.kernel.Generation()
	if err != nil || n.frontends != nil && generation == n.generation {
		return err
	}
	var chains []rules.ListedChain
	for _, id := range iptables.FrontendChains() {
		c, err := n.kernel.ListChain(id)
		switch {
		case err == nil:
			chains = append(chains, c)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	n.frontends, n.generation = iptables.Frontends(chains), generation
	return nil
}

// of returns the port of a service that a flow is to.
func (n *serviceNames) of(f *conntrack.Flow) (model.PortName, bool) {
	to := f.Original.Destination
	if name, ok := n.frontends[iptables.Destination{Protocol: f.Protocol, Addr: to}]; ok {
		return name, true
	}
	if !n.isLocal(to.Addr()) {
		return model.PortName{}, false
	}
	nodePort := netip.IPv4Unspecified()
	if to.Addr().Is6() {
		nodePort = netip.IPv6Unspecified()
	}
	name, ok := n.frontends[iptables.Destination{Protocol: f.Protocol, Addr: netip.AddrPortFrom(nodePort, to.Port())}]
	return name, ok
}

// isLocal reports whether node ports may be served on a, as they never are on
// ::1.
func (n *serviceNames) isLocal(a netip.Addr) bool {
	if a.IsLoopback() {
		return a.Is4()
	}
	_, ok := slices.BinarySearchFunc(n.local.List(), a, netip.Addr.Compare)
	return ok
}

// has reports whether there are rules for a service.
func (n *serviceNames) has(service model.Name) bool {
	for _, name := range n.frontends {
		if name.Name == service {
			return true
		}
	}
	return false
}
