package leftovers

import (
	"encoding/binary"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// AddPorts adds ports to a set of type bitmap:port, which IpsetAdd of
// vishvananda/netlink v1.3.1 cannot: it gives a protocol, too, which the kernel
// refuses.
func AddPorts(set string, ports ...uint16) error {
	const add, data, lineNumber = unix.NFNL_SUBSYS_IPSET<<8 | 9, 7, 9 // IPSET_CMD_ADD, IPSET_ATTR_DATA, IPSET_ATTR_LINENO
	return with(unix.NETLINK_NETFILTER, func(s socket) error {
		for _, port := range ports {
			element, err := nested(data,
				netlink.Attribute{Type: setAttrPort | netlink.NetByteOrder, Data: binary.BigEndian.AppendUint16(nil, port)},
				netlink.Attribute{Type: lineNumber | netlink.NetByteOrder, Data: make([]byte, 4)})
			if err != nil {
				return err
			}
			if _, err := s.ask(add, netlink.Acknowledge, netfilter, protocolAttribute(), stringAttribute(setAttrName, set), element); err != nil {
				return err
			}
		}
		return nil
	})
}

// Convicts reports whether a virtual server is held for kube-proxy's where its
// device has an address and its sets name a port of TCP.
func Convicts(device netip.Addr, tcp uint16, address netip.Addr, protocol, port uint16, mark uint32) bool {
	e := evidence{
		addresses: map[netip.Addr]bool{device: true},
		nodePorts: map[nodePort]bool{{unix.IPPROTO_TCP, tcp}: true},
	}
	return e.convicts(server{address, protocol, port, mark})
}
