package leftovers

import (
	"encoding/binary"
	"fmt"
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

// From linux/ip_vs.h, for making what the product only deletes.
const (
	ipvsNewService   = 1 // IPVS_CMD_NEW_SERVICE
	serviceScheduler = 6 // IPVS_SVC_ATTR_SCHED_NAME
	serviceFlags     = 7 // IPVS_SVC_ATTR_FLAGS
	serviceTimeout   = 8 // IPVS_SVC_ATTR_TIMEOUT
	serviceNetmask   = 9 // IPVS_SVC_ATTR_NETMASK
)

// A Server is a virtual server to make: by address, or by mark.
type Server struct {
	Address  string // with port
	Protocol uint16
	Mark     uint32
}

// AddServers makes virtual servers. ok is false where the kernel has no IPVS.
func AddServers(servers ...Server) (ok bool, err error) {
	err = with(unix.NETLINK_GENERIC, func(s socket) error {
		family, err := ipvsFamily(s)
		if ok = family != 0; !ok || err != nil {
			return err
		}
		for _, one := range servers {
			attribute, err := one.attribute()
			if err != nil {
				return err
			}
			if _, err := s.ask(family, netlink.Acknowledge, [4]byte{ipvsNewService, ipvsVersion}, attribute); err != nil {
				return fmt.Errorf("make virtual server %v: %w", one, err)
			}
		}
		return nil
	})
	return ok, err
}

func (s Server) attribute() (netlink.Attribute, error) {
	number := func(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }
	attributes := []netlink.Attribute{
		stringAttribute(serviceScheduler, "rr"),
		{Type: serviceFlags, Data: append(number(0), number(0xffffffff)...)},
		{Type: serviceTimeout, Data: number(0)},
	}
	if s.Mark != 0 {
		attributes = append(attributes, netlink.Attribute{Type: serviceFamily, Data: []byte{unix.AF_INET, 0}},
			netlink.Attribute{Type: serviceMark, Data: number(s.Mark)}, netlink.Attribute{Type: serviceNetmask, Data: number(0xffffffff)})
		return nested(ipvsAttrService, attributes...)
	}
	at := netip.MustParseAddrPort(s.Address)
	mask := uint32(0xffffffff)
	if at.Addr().Is6() {
		mask = 128
	}
	attributes = append(attributes, netlink.Attribute{Type: serviceNetmask, Data: number(mask)})
	identity, err := server{at.Addr(), s.Protocol, at.Port(), 0}.attribute()
	if err != nil {
		return netlink.Attribute{}, err
	}
	more, err := netlink.MarshalAttributes(attributes)
	identity.Data = append(identity.Data, more...)
	return identity, err
}

// Servers lists all virtual servers, as text.
func Servers() (all []string, err error) {
	err = with(unix.NETLINK_GENERIC, func(s socket) error {
		family, err := ipvsFamily(s)
		if err != nil {
			return err
		}
		servers, err := listServers(s, family)
		for _, one := range servers {
			if one.mark != 0 {
				all = append(all, fmt.Sprintf("mark %d", one.mark))
				continue
			}
			all = append(all, one.String())
		}
		return err
	})
	return all, err
}
