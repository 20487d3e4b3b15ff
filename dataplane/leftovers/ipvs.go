package leftovers

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// nodePortSets name, without prefix, the sets of node ports, and their
// protocols. The ports at which the traffic policy is Local are in them, too.
var nodePortSets = [...]struct {
	protocol uint16
	name     string
}{
	{unix.IPPROTO_TCP, "NODE-PORT-TCP"},
	{unix.IPPROTO_UDP, "NODE-PORT-UDP"},
	{unix.IPPROTO_SCTP, "NODE-PORT-SCTP-HASH"},
	{unix.IPPROTO_SCTP, "NODE-PORT-SCTP"},
}

// nodePort is a port with its protocol.
type nodePort struct{ protocol, port uint16 }

// evidence is what the ipvs mode has left besides virtual servers. It tells
// which of these are kube-proxy's.
type evidence struct {
	device    netlink.Link // nil for none
	addresses map[netip.Addr]bool
	sets      []string
	nodePorts map[nodePort]bool
}

// convicts reports whether a virtual server is kube-proxy's, which has none by
// mark.
func (e evidence) convicts(s server) bool {
	return s.mark == 0 && (e.addresses[s.address] || e.nodePorts[nodePort{s.protocol, s.port}])
}

func gather() (e evidence, err error) {
	if e.device, e.addresses, err = findDevice(); err != nil {
		return evidence{}, err
	}
	known, err := setsKnown()
	if err != nil || !known {
		return e, err
	}
	err = with(unix.NETLINK_NETFILTER, func(s socket) (err error) {
		if e.sets, err = ourSets(s); err != nil {
			return err
		}
		e.nodePorts, err = readNodePorts(s, e.sets)
		return err
	})
	return e, err
}

func readNodePorts(s socket, exist []string) (map[nodePort]bool, error) {
	all := map[nodePort]bool{}
	for _, set := range nodePortSets {
		for _, prefix := range setPrefixes {
			name := setName(prefix, set.name)
			if !slices.Contains(exist, name) {
				continue
			}
			ports, err := listPorts(s, name)
			if err != nil {
				return nil, err
			}
			for _, port := range ports {
				all[nodePort{set.protocol, port}] = true
			}
		}
	}
	return all, nil
}

// servers returns the virtual servers that are kube-proxy's, and the number of
// the protocol that they are deleted by.
func (e evidence) servers() (ours []server, family uint16, err error) {
	if len(e.addresses) == 0 && len(e.nodePorts) == 0 {
		return nil, 0, nil
	}
	err = with(unix.NETLINK_GENERIC, func(s socket) (err error) {
		if family, err = ipvsFamily(s); err != nil || family == 0 {
			return err
		}
		ours, err = listServers(s, family)
		return err
	})
	return slices.DeleteFunc(ours, func(s server) bool { return !e.convicts(s) }), family, err
}

// lookForIPVS finds virtual servers, then the device, then the sets.
func lookForIPVS(Options) ([]Found, remover, error) {
	e, err := gather()
	if err != nil {
		return nil, nil, err
	}
	servers, family, err := e.servers()
	if err != nil {
		return nil, nil, err
	}
	var found []Found
	for _, s := range servers {
		found = append(found, Found{Kind: "ipvs virtual server", Name: s.String()})
	}
	if e.device != nil {
		found = append(found, Found{Kind: "device", Name: deviceName})
	}
	for _, name := range e.sets {
		found = append(found, Found{Kind: "ipset", Name: name})
	}
	return found, func(ctx context.Context, found []Found) error { return e.remove(ctx, family, servers, found) }, nil
}

// remove removes all that was found. The evidence stays until no virtual server
// is left that it could be needed for.
func (e evidence) remove(ctx context.Context, family uint16, servers []server, found []Found) error {
	convicts, rest := found[:len(servers)], found[len(servers):]
	if err := removeServers(family, servers, convicts); err != nil {
		for i := range rest {
			rest[i].Kept = errors.New("virtual servers are left")
		}
		return err
	}
	var errs []error
	if e.device != nil {
		rest[0].Kept = removeDevice(e.device)
		errs = append(errs, rest[0].Kept)
		rest = rest[1:]
	}
	if len(rest) > 0 {
		errs = append(errs, removeSets(ctx, rest))
	}
	return errors.Join(errs...)
}
