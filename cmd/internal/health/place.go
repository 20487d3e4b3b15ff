package health

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"golang.org/x/sys/unix"
)

// place is where one socket listens.
type place struct {
	network string // as net.Listen has it
	addr    netip.AddrPort
}

// networks are the sockets of one family alone.
var networks = map[model.Family]string{model.IPv4: "tcp4", model.IPv6: "tcp6"}

// unspecified are the addresses that stand for all of a family.
var unspecified = map[model.Family]netip.Addr{model.IPv4: netip.IPv4Unspecified(), model.IPv6: netip.IPv6Unspecified()}

func sameScope(a, b plan.NodePortScope) bool {
	return a.All == b.All && a.Except == b.Except && slices.Equal(a.Addrs, b.Addrs)
}

// places is where c is to be asked for: nowhere if it is not current. Where all
// addresses of both families are node-port addresses one socket does; net makes
// it one of IPv4 where the kernel has no IPv6.
func (p *Ports) places(c *check) []place {
	if p.checks[c.service] != c {
		return nil
	}
	var places []place
	everywhere := 0
	for _, f := range model.Families {
		if _, has := c.ready[f]; !has {
			continue
		}
		if p.scopes[f].All {
			everywhere++
		}
		for _, a := range addresses(f, p.scopes[f]) {
			places = append(places, place{networks[f], netip.AddrPortFrom(a, c.port)})
		}
	}
	if everywhere == len(model.Families) {
		return []place{{"tcp", netip.AddrPortFrom(netip.IPv4Unspecified(), c.port)}}
	}
	return places
}

// addresses are those to listen on. A link-local one is good for nothing
// without its interface, and no balancer asks there.
func addresses(f model.Family, scope plan.NodePortScope) []netip.Addr {
	if scope.All {
		return []netip.Addr{unspecified[f]}
	}
	return slices.DeleteFunc(slices.Clone(scope.Addrs), func(a netip.Addr) bool {
		return f == model.IPv6 && a.IsLinkLocalUnicast()
	})
}

// listen opens a socket at a place.
func listen(ctx context.Context, at place) (net.Listener, error) {
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	if !at.addr.Addr().IsUnspecified() {
		config.Control = freebind
	}
	return config.Listen(ctx, at.network, at.addr.String())
}

// freebind allows an address that cannot be used yet: for a second an IPv6
// address that was just added is tentative, and the kernel says that there is no
// such address (inet6_bind, net/ipv6/af_inet6.c, Linux 6.18).
func freebind(network, _ string, conn syscall.RawConn) error {
	level, option := unix.SOL_IP, unix.IP_FREEBIND
	if network == "tcp6" {
		level, option = unix.SOL_IPV6, unix.IPV6_FREEBIND
	}
	var err error
	if failed := conn.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, 1) }); failed != nil {
		return failed
	}
	return err
}
