package leftovers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/wire"
)

// From linux/ip_vs.h, Linux 4.19 to 6.18.
const (
	ipvsName    = "IPVS" // IPVS_GENL_NAME
	ipvsVersion = 1      // IPVS_GENL_VERSION

	ipvsDelService = 3 // IPVS_CMD_DEL_SERVICE
	ipvsGetService = 4 // IPVS_CMD_GET_SERVICE

	ipvsAttrService = 1 // IPVS_CMD_ATTR_SERVICE

	serviceFamily   = 1 // IPVS_SVC_ATTR_AF
	serviceProtocol = 2 // IPVS_SVC_ATTR_PROTOCOL
	serviceAddress  = 3 // IPVS_SVC_ATTR_ADDR
	servicePort     = 4 // IPVS_SVC_ATTR_PORT, big-endian
	serviceMark     = 5 // IPVS_SVC_ATTR_FWMARK
)

// server is what identifies a virtual server: a mark, or the other three.
type server struct {
	address  netip.Addr
	protocol uint16
	port     uint16
	mark     uint32
}

var protocolNames = map[uint16]string{unix.IPPROTO_TCP: "TCP", unix.IPPROTO_UDP: "UDP", unix.IPPROTO_SCTP: "SCTP"}

// String returns for instance "10.96.0.1:443/TCP".
func (s server) String() string {
	return netip.AddrPortFrom(s.address, s.port).String() + "/" + protocolNames[s.protocol]
}

// ipvsFamily returns the number of the protocol, 0 where there is no IPVS. It
// looks for it among all: to ask for one by name would load its module
// (ctrl_getfamily, net/netlink/genetlink.c, Linux 6.18).
func ipvsFamily(s socket) (uint16, error) {
	header := [4]byte{unix.CTRL_CMD_GETFAMILY, 2}
	replies, err := s.ask(unix.GENL_ID_CTRL, netlink.Dump, header)
	if err != nil {
		return 0, fmt.Errorf("list generic netlink families: %w", err)
	}
	for _, body := range replies {
		if id, name := familyOf(body); name == ipvsName {
			return id, nil
		}
	}
	return 0, nil
}

func familyOf(body []byte) (id uint16, name string) {
	for kind, value := range wire.Attributes(body) {
		switch {
		case kind == unix.CTRL_ATTR_FAMILY_NAME:
			name = strings.TrimRight(string(value), "\x00")
		case kind == unix.CTRL_ATTR_FAMILY_ID && len(value) == 2:
			id = binary.NativeEndian.Uint16(value)
		}
	}
	return id, name
}

func listServers(s socket, family uint16) ([]server, error) {
	replies, err := s.ask(family, netlink.Dump, [4]byte{ipvsGetService, ipvsVersion})
	if err != nil {
		return nil, fmt.Errorf("list virtual servers: %w", err)
	}
	var all []server
	for _, body := range replies {
		for kind, value := range wire.Attributes(body) {
			if kind == ipvsAttrService {
				all = append(all, readServer(value))
			}
		}
	}
	return all, nil
}

func readServer(attributes []byte) (s server) {
	var family uint16
	var address []byte
	for kind, value := range wire.Attributes(attributes) {
		switch {
		case kind == serviceFamily && len(value) == 2:
			family = binary.NativeEndian.Uint16(value)
		case kind == serviceProtocol && len(value) == 2:
			s.protocol = binary.NativeEndian.Uint16(value)
		case kind == serviceAddress:
			address = value
		case kind == servicePort && len(value) == 2:
			s.port = binary.BigEndian.Uint16(value)
		case kind == serviceMark && len(value) == 4:
			s.mark = binary.NativeEndian.Uint32(value)
		}
	}
	s.address = readAddress(family, address)
	return s
}

// readAddress reads a union nf_inet_addr, of 16 bytes for both families.
func readAddress(family uint16, b []byte) netip.Addr {
	switch {
	case family == unix.AF_INET && len(b) >= 4:
		return netip.AddrFrom4([4]byte(b[:4]))
	case family == unix.AF_INET6 && len(b) >= 16:
		return netip.AddrFrom16([16]byte(b[:16]))
	}
	return netip.Addr{}
}

// attribute identifies a server to the kernel.
func (s server) attribute() (netlink.Attribute, error) {
	family, address := uint16(unix.AF_INET6), make([]byte, 16)
	if s.address.Is4() {
		family = unix.AF_INET
	}
	copy(address, s.address.AsSlice())
	number := func(n uint16) []byte { return binary.NativeEndian.AppendUint16(nil, n) }
	return nested(ipvsAttrService,
		netlink.Attribute{Type: serviceFamily, Data: number(family)},
		netlink.Attribute{Type: serviceProtocol, Data: number(s.protocol)},
		netlink.Attribute{Type: serviceAddress, Data: address},
		netlink.Attribute{Type: servicePort, Data: binary.BigEndian.AppendUint16(nil, s.port)})
}

// removeServers deletes servers, and tells found of each that stays.
func removeServers(family uint16, servers []server, found []Found) error {
	if len(servers) == 0 {
		return nil
	}
	return with(unix.NETLINK_GENERIC, func(s socket) error {
		var errs []error
		for i, one := range servers {
			if found[i].Kept = removeServer(s, family, one); found[i].Kept != nil {
				errs = append(errs, fmt.Errorf("delete virtual server %v: %w", one, found[i].Kept))
			}
		}
		return errors.Join(errs...)
	})
}

// removeServer deletes a server. The kernel says ESRCH if it is gone
// (ip_vs_genl_set_cmd, net/netfilter/ipvs/ip_vs_ctl.c, Linux 6.18).
func removeServer(s socket, family uint16, one server) error {
	attribute, err := one.attribute()
	if err != nil {
		return err
	}
	_, err = s.ask(family, netlink.Acknowledge, [4]byte{ipvsDelService, ipvsVersion}, attribute)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}
