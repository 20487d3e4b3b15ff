package lab

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// defaultTimeout leaves room for two SYNs to be sent again, after one second
// and after three. The first is often without effect: its ICMP error arrives
// while connect still holds the socket, and is put aside (tcp_v4_err,
// net/ipv4/tcp_ipv4.c, Linux 6.18).
const defaultTimeout = 4 * time.Second

// DialOptions say how to reach a server. The zero value is any source, and
// four seconds.
type DialOptions struct {
	// Timeout bounds the whole attempt; 0 means four seconds.
	Timeout time.Duration
	// Source is the local address, and LocalPort the local port; not valid and
	// 0 mean that the kernel chooses.
	Source    netip.Addr
	LocalPort uint16
}

func (o DialOptions) timeout() time.Duration {
	if o.Timeout == 0 {
		return defaultTimeout
	}
	return o.Timeout
}

// local is the address and port to dial to from, in to's family.
func (o DialOptions) local(to netip.AddrPort) netip.AddrPort {
	source := o.Source
	switch {
	case source.IsValid():
	case to.Addr().Is4():
		source = netip.IPv4Unspecified()
	default:
		source = netip.IPv6Unspecified()
	}
	return netip.AddrPortFrom(source, o.LocalPort)
}

// Dial reaches out from p to a server, asks who it is and hangs up. Network is
// tcp, udp or sctp.
func (p *Place) Dial(network string, to netip.AddrPort, o DialOptions) Outcome {
	conn, outcome := p.Connect(network, to, o)
	if conn != nil {
		_ = conn.Close() // the answer is here
	}
	return outcome
}

// Connect is Dial without hanging up. The connection is nil unless the outcome
// is Answered; the caller closes it.
func (p *Place) Connect(network string, to netip.AddrPort, o DialOptions) (*Conn, Outcome) {
	deadline := time.Now().Add(o.timeout())
	raw, err := p.dial(network, to, o, deadline)
	if err != nil {
		return nil, outcomeOf(err)
	}
	conn := &Conn{raw: raw, replies: bufio.NewReader(raw)}
	outcome := conn.ask(deadline)
	if outcome.Kind != Answered {
		_ = conn.Close() // it served for nothing but this outcome
		return nil, outcome
	}
	return conn, outcome
}

func (p *Place) dial(network string, to netip.AddrPort, o DialOptions, deadline time.Time) (net.Conn, error) {
	if network == "sctp" {
		return dialSCTP(p.Namespace, o.local(to), to, deadline)
	}
	dialer := net.Dialer{Deadline: deadline, Control: o.prepare}
	switch network {
	case "tcp":
		dialer.LocalAddr = net.TCPAddrFromAddrPort(o.local(to))
	case "udp":
		dialer.LocalAddr = net.UDPAddrFromAddrPort(o.local(to))
	}
	return p.Namespace.Dial(context.Background(), dialer, network, to.String())
}

// prepare lets a given local port be used again at once, and makes the kernel
// report every ICMP error of a UDP socket: without RECVERR only "port
// unreachable" is (udp_err, net/ipv4/udp.c, Linux 6.18).
//
// A port that the kernel chooses must not be one in use. With REUSEADDR on both
// sockets it may be in UDP, and one of them gets the other's answers
// (inet_rcv_saddr_equal in udp_lib_lport_inuse, the same file).
func (o DialOptions) prepare(network, _ string, conn syscall.RawConn) error {
	var failed error
	err := conn.Control(func(fd uintptr) {
		if o.LocalPort != 0 {
			failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		}
		switch {
		case failed != nil:
		case network == "udp4":
			failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_RECVERR, 1)
		case network == "udp6":
			failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1)
		}
	})
	if err != nil {
		return err
	}
	return failed
}

// A Conn is a connection to a Server, or a UDP socket tied to one address. One
// goroutine may use it at a time.
type Conn struct {
	raw     net.Conn
	replies *bufio.Reader
}

// Ask asks the server once more who it is, within timeout.
func (c *Conn) Ask(timeout time.Duration) Outcome { return c.ask(time.Now().Add(timeout)) }

// Close hangs up.
func (c *Conn) Close() error { return c.raw.Close() }

// Local is the connection's own address and port.
func (c *Conn) Local() netip.AddrPort {
	local, _ := netip.ParseAddrPort(c.raw.LocalAddr().String())
	return local
}

func (c *Conn) ask(deadline time.Time) Outcome {
	if err := c.raw.SetDeadline(deadline); err != nil {
		return outcomeOf(err)
	}
	// A kernel that rejects its own packet says EPERM first, and that it was
	// refused, by the ICMP error that it sent itself, only to who then reads.
	if _, err := c.raw.Write([]byte("\n")); err != nil && !errors.Is(err, unix.EPERM) {
		return outcomeOf(err)
	}
	line, err := c.replies.ReadString('\n')
	if err != nil {
		return outcomeOf(err)
	}
	outcome, err := parseReply(line)
	if err != nil {
		return outcomeOf(err)
	}
	return outcome
}
