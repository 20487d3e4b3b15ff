package leftovers

import (
	"errors"
	"fmt"
	"time"

	"github.com/mdlayher/netlink"
)

// patience bounds the wait for a reply. The kernel has queued each, or the
// first part of a dump, before sendmsg returns (netlink_unicast_kernel,
// net/netlink/af_netlink.c, Linux 6.18).
const patience = 10 * time.Second

// socket asks one protocol of netlink.
type socket struct{ conn *netlink.Conn }

func openSocket(protocol int) (socket, error) {
	conn, err := netlink.Dial(protocol, nil)
	if err != nil {
		return socket{}, fmt.Errorf("open netlink socket of protocol %d: %w", protocol, err)
	}
	return socket{conn}, nil
}

func (s socket) close() error { return s.conn.Close() }

// ask sends one message: kind, the fixed header of its protocol and the
// attributes. It returns the attributes of each reply.
func (s socket) ask(kind uint16, flags netlink.HeaderFlags, header [4]byte, attributes ...netlink.Attribute) ([][]byte, error) {
	payload, err := netlink.MarshalAttributes(attributes)
	if err != nil {
		return nil, err
	}
	if err := s.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	replies, err := s.conn.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(kind), Flags: netlink.Request | flags},
		Data:   append(header[:], payload...),
	})
	if err != nil {
		return nil, err
	}
	var bodies [][]byte
	for _, r := range replies {
		if len(r.Data) > len(header) && r.Header.Type != netlink.Error {
			bodies = append(bodies, r.Data[len(header):])
		}
	}
	return bodies, nil
}

// with opens a socket for as long as use runs.
func with(protocol int, use func(socket) error) (err error) {
	s, err := openSocket(protocol)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return use(s)
}

// nested is an attribute that holds others.
func nested(kind uint16, attributes ...netlink.Attribute) (netlink.Attribute, error) {
	b, err := netlink.MarshalAttributes(attributes)
	return netlink.Attribute{Type: kind | netlink.Nested, Data: b}, err
}
