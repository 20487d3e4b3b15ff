package leftovers

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/wire"
)

// From linux/netfilter/ipset/ip_set.h, Linux 4.19 to 6.18.
const (
	setProtocol = 6 // IPSET_PROTOCOL_MIN, which all kernels take

	setDestroy = unix.NFNL_SUBSYS_IPSET<<8 | 3 // IPSET_CMD_DESTROY
	setList    = unix.NFNL_SUBSYS_IPSET<<8 | 7 // IPSET_CMD_LIST

	setAttrProtocol = 1 // IPSET_ATTR_PROTOCOL
	setAttrName     = 2 // IPSET_ATTR_SETNAME
	setAttrFlags    = 6 // IPSET_ATTR_FLAGS
	setAttrElements = 8 // IPSET_ATTR_ADT
	setAttrPort     = 4 // IPSET_ATTR_PORT, of an element

	namesOnly = 1 << 2 // IPSET_FLAG_LIST_SETNAME

	// setBusy is IPSET_ERR_BUSY, an error number of ip_set's own.
	setBusy = unix.Errno(4100)

	// optionSets is SO_IP_SET, the option that ip_set adds to sockets.
	optionSets = 83

	// maxSetName is IPSET_MAXNAMELEN less the zero byte.
	maxSetName = 31
)

// setNames are the sets of the ipvs mode without "KUBE-" (ipsetInfo in
// pkg/proxy/ipvs, kube-proxy 1.37), and at the end those that it had under
// another name before 1.15.
var setNames = [...]string{
	"LOOP-BACK", "CLUSTER-IP", "EXTERNAL-IP", "EXTERNAL-IP-LOCAL",
	"LOAD-BALANCER", "LOAD-BALANCER-FW", "LOAD-BALANCER-LOCAL",
	"LOAD-BALANCER-SOURCE-IP", "LOAD-BALANCER-SOURCE-CIDR",
	"NODE-PORT-TCP", "NODE-PORT-LOCAL-TCP", "NODE-PORT-UDP", "NODE-PORT-LOCAL-UDP",
	"NODE-PORT-SCTP-HASH", "NODE-PORT-LOCAL-SCTP-HASH",
	"HEALTH-CHECK-NODE-PORT", "IPVS-IPS",
	"NODE-PORT-SCTP", "NODE-PORT-LOCAL-SCTP",
}

// setPrefixes begin the names of the sets for IPv4 and for IPv6.
var setPrefixes = [...]string{"KUBE-", "KUBE-6-"}

// setName is a set's whole name, cut as kube-proxy cuts it.
func setName(prefix, name string) string {
	full := prefix + name
	return full[:min(len(full), maxSetName)]
}

// ourSets returns those of kube-proxy's sets that exist.
func ourSets(s socket) ([]string, error) {
	exist, err := listSets(s)
	if err != nil {
		return nil, err
	}
	var ours []string
	for _, prefix := range setPrefixes {
		for _, name := range setNames {
			if full := setName(prefix, name); exist[full] {
				ours = append(ours, full)
			}
		}
	}
	return ours, nil
}

const (
	// The kernel lets go of what a deleted rule referred to a moment after the
	// transaction (nf_tables_trans_destroy_work, net/netfilter/nf_tables_api.c,
	// Linux 6.18).
	releaseTries = 20
	releasePause = 10 * time.Millisecond
)

// removeSets destroys sets. One that the rules of others refer to stays.
func removeSets(ctx context.Context, found []Found) error {
	return with(unix.NETLINK_NETFILTER, func(s socket) error {
		again := time.NewTicker(releasePause)
		defer again.Stop()
		for try := range releaseTries {
			if err := destroySets(s, found, try == 0); err != nil {
				return err
			}
			if !slices.ContainsFunc(found, func(f Found) bool { return f.Kept != nil }) {
				return nil
			}
			select {
			case <-ctx.Done():
				return nil
			case <-again.C:
			}
		}
		return nil
	})
}

// destroySets destroys those that have been kept, or all.
func destroySets(s socket, found []Found, all bool) error {
	var errs []error
	for i := range found {
		if f := &found[i]; all || f.Kept != nil {
			f.Kept = destroySet(s, f.Name)
			if f.Kept != nil && !errors.Is(f.Kept, errInUse) {
				errs = append(errs, fmt.Errorf("ipset %s: %w", f.Name, f.Kept))
			}
		}
	}
	return errors.Join(errs...)
}

// errInUse says that rules that are not ours refer to a set.
var errInUse = errors.New("rules of others refer to it")

func destroySet(s socket, name string) error {
	_, err := s.ask(setDestroy, netlink.Acknowledge, netfilter, protocolAttribute(), stringAttribute(setAttrName, name))
	var errno unix.Errno
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case errors.As(err, &errno) && errno == setBusy:
		return errInUse
	}
	return err
}

// setsKnown reports whether the kernel has loaded ip_set. To ask ip_set itself
// would load it (nfnetlink_rcv_msg, net/netfilter/nfnetlink.c); its socket
// option does not (nf_sockopt_find, net/netfilter/nf_sockopt.c, Linux 6.18).
func setsKnown() (known bool, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false, fmt.Errorf("open socket: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	_, answer := unix.GetsockoptInt(fd, unix.SOL_IP, optionSets) // too short for it to say more than EINVAL
	return !errors.Is(answer, unix.ENOPROTOOPT), nil
}

// netfilter is struct nfgenmsg: an address family, which ip_set does not look
// at, the version and the resource.
var netfilter = [4]byte{unix.AF_INET, unix.NFNETLINK_V0}

func protocolAttribute() netlink.Attribute {
	return netlink.Attribute{Type: setAttrProtocol, Data: []byte{setProtocol}}
}

func stringAttribute(kind uint16, value string) netlink.Attribute {
	return netlink.Attribute{Type: kind, Data: append([]byte(value), 0)}
}

// listSets returns the names of all sets.
func listSets(s socket) (map[string]bool, error) {
	flags := binary.BigEndian.AppendUint32(nil, namesOnly)
	replies, err := s.ask(setList, netlink.Dump, netfilter, protocolAttribute(),
		netlink.Attribute{Type: setAttrFlags | netlink.NetByteOrder, Data: flags})
	if err != nil {
		return nil, fmt.Errorf("list sets: %w", err)
	}
	names := map[string]bool{}
	for _, body := range replies {
		for kind, value := range wire.Attributes(body) {
			if kind == setAttrName {
				names[strings.TrimRight(string(value), "\x00")] = true
			}
		}
	}
	return names, nil
}

// listPorts returns the ports in a set whose elements have one each.
func listPorts(s socket, name string) ([]uint16, error) {
	replies, err := s.ask(setList, netlink.Dump, netfilter, protocolAttribute(), stringAttribute(setAttrName, name))
	if err != nil {
		return nil, fmt.Errorf("list set %s: %w", name, err)
	}
	var ports []uint16
	for _, body := range replies {
		for kind, elements := range wire.Attributes(body) {
			if kind == setAttrElements {
				ports = append(ports, readPorts(elements)...)
			}
		}
	}
	return ports, nil
}

func readPorts(elements []byte) (ports []uint16) {
	for _, element := range wire.Attributes(elements) {
		for kind, value := range wire.Attributes(element) {
			if kind == setAttrPort && len(value) == 2 {
				ports = append(ports, binary.BigEndian.Uint16(value))
			}
		}
	}
	return ports
}
