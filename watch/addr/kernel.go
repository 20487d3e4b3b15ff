package addr

import (
	"net/netip"

	"github.com/vishvananda/netlink"
)

// kernel is what a Follower asks.
type kernel interface {
	// subscribe returns notices of all changes from now on.
	subscribe() (*notices, error)
	// list returns all addresses, or with netlink.ErrDumpInterrupted perhaps
	// not all.
	list() ([]netip.Addr, error)
}

// notices tell that addresses have changed. They end when the kernel drops
// some, because nobody read them in time.
type notices struct {
	updates <-chan netlink.AddrUpdate
	stop    chan struct{}
}

// changes returns nil, which never delivers anything, for no notices.
func (n *notices) changes() <-chan netlink.AddrUpdate {
	if n == nil {
		return nil
	}
	return n.updates
}

// drain takes the notices of what the next list shows anyway.
func (n *notices) drain() {
	for {
		select {
		case _, ok := <-n.updates:
			if !ok {
				return
			}
		default:
			return
		}
	}
}

// close ends the notices, and waits until nothing delivers them any more.
func (n *notices) close() {
	close(n.stop)
	for range n.updates {
	}
}

// host asks the kernel over rtnetlink.
type host struct{}

func (host) subscribe() (*notices, error) {
	updates, stop := make(chan netlink.AddrUpdate, 64), make(chan struct{})
	if err := netlink.AddrSubscribe(updates, stop); err != nil {
		return nil, err
	}
	return &notices{updates, stop}, nil
}

// list leaves out the addresses of protocols other than IP, which the kernel
// lists too (rtnl_dump_all, net/core/rtnetlink.c, Linux 6.18).
func (host) list() ([]netip.Addr, error) {
	all, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	addrs := make([]netip.Addr, 0, len(all))
	for _, a := range all {
		if a.IPNet == nil {
			continue
		}
		if addr, ok := netip.AddrFromSlice(a.IP); ok {
			addrs = append(addrs, addr.Unmap())
		}
	}
	return addrs, err
}
