package plan

import (
	"net/netip"
	"slices"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// commentLimit is the number of endpoints above which rules that exist per
// endpoint go without comments, counted over all service ports of a family.
// kube-proxy 1.37 has the same limit (largeClusterEndpointsThreshold).
const commentLimit = 1000

var (
	loopback4 = netip.PrefixFrom(netip.AddrFrom4([4]byte{127}), 8)
	loopback6 = netip.PrefixFrom(netip.IPv6Loopback(), 128)
)

// frame decides what no single service decides.
func (o Options) frame(f model.Family, node model.Node, endpoints int) Frame {
	localhost := o.localhostNodePorts(f, node)
	return Frame{
		Mark:          o.mark(),
		NodePorts:     o.nodePortScope(f, node, localhost),
		GuardLocalnet: localhost,
		DropInvalid:   o.DropInvalid,
		CountInvalid:  o.DropInvalid && o.Counters.InvalidDropped,
		Comments:      endpoints <= commentLimit,
	}
}

// nodePortPrefixes are the prefixes of family f that select node-port
// addresses; nil for all addresses.
func (o Options) nodePortPrefixes(f model.Family, node model.Node) []netip.Prefix {
	prefixes := model.PrefixesOfFamily(o.NodePorts.Prefixes, f)
	if own := node.Address(f); o.NodePorts.Primary && own.IsValid() && !own.IsLoopback() {
		prefixes = append(prefixes, netip.PrefixFrom(own, own.BitLen()))
	}
	if slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Bits() == 0 }) {
		return nil
	}
	return prefixes
}

// NeedsRouteLocalnet reports whether node ports are served on 127.0.0.0/8,
// for which the kernel has to be told to route packets from there
// (net.ipv4.conf.all.route_localnet).
func (o Options) NeedsRouteLocalnet(node model.Node) bool {
	return o.localhostNodePorts(model.IPv4, node)
}

// localhostNodePorts: IPv6 has nothing like route_localnet, so that node ports
// on ::1 cannot work.
func (o Options) localhostNodePorts(f model.Family, node model.Node) bool {
	if f != model.IPv4 || !o.NodePorts.Localhost {
		return false
	}
	prefixes := o.nodePortPrefixes(f, node)
	return len(prefixes) == 0 || slices.ContainsFunc(prefixes, loopback4.Overlaps)
}

func (o Options) nodePortScope(f model.Family, node model.Node, localhost bool) NodePortScope {
	except := loopback6
	if f == model.IPv4 {
		except = loopback4
	}
	if localhost {
		except = netip.Prefix{}
	}
	prefixes := o.nodePortPrefixes(f, node)
	if len(prefixes) == 0 {
		return NodePortScope{All: true, Except: except}
	}
	return NodePortScope{Addrs: selected(model.OfFamily(node.Local, f), prefixes, except)}
}

// selected returns the addresses within any of prefixes and outside except,
// sorted, each once.
func selected(addrs []netip.Addr, prefixes []netip.Prefix, except netip.Prefix) []netip.Addr {
	var in []netip.Addr
	for _, a := range addrs {
		covers := func(p netip.Prefix) bool { return p.Contains(a) }
		if slices.ContainsFunc(prefixes, covers) && !(except.IsValid() && except.Contains(a)) {
			in = append(in, a)
		}
	}
	slices.SortFunc(in, netip.Addr.Compare)
	return slices.Compact(in)
}
