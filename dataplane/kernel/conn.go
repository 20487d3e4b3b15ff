package kernel

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Options configures a Conn. The zero value is the current network namespace.
type Options struct {
	// NetNS is a file descriptor of the network namespace to work in; 0 for
	// that of the calling thread. It is not used after Dial.
	NetNS int
	// Tap, if set, is given each transaction as it is sent. It must not keep
	// the slice.
	Tap func(batch []byte)
}

// Conn is a connection to nf_tables and nfnetlink_acct of one network
// namespace.
//
// No call waits: the kernel works a request off inside sendmsg and has queued
// every reply, or the first part of a dump, when that returns
// (nfnetlink_rcv_batch in net/netfilter/nfnetlink.c and __netlink_dump_start
// in net/netlink/af_netlink.c, 4.19 to 6.18), and recvmsg queues the next part
// of a dump. So a reply that is not there is not coming. The time that the
// kernel takes inside sendmsg, seconds for 100,000 rules, has no other bound.
type Conn struct {
	mu       sync.Mutex // held for a whole call
	nl       *netlink.Conn
	raw      syscall.RawConn
	tap      func([]byte)
	sequence uint32
	// The sizes of the socket's buffers, as the kernel counts them.
	sendBuffer, receiveBuffer int
	// incoming holds one datagram, outgoing the last batch, for reuse.
	incoming, outgoing []byte
}

// datagram is the largest reply in bytes: dumps come in parts of at most 32
// KiB (netlink_recvmsg in net/netlink/af_netlink.c, 6.18), errors and echoes
// in less than a page.
const datagram = 64 << 10

// sendOverhead is what netlink_sendmsg (net/netlink/af_netlink.c) wants free in
// the send buffer beside the datagram, in bytes.
const sendOverhead = 32

// Dial opens a connection. Opening needs no privilege, its calls need
// CAP_NET_ADMIN in the user namespace that owns the network namespace.
func Dial(o Options) (*Conn, error) {
	nl, err := netlink.Dial(unix.NETLINK_NETFILTER, &netlink.Config{NetNS: o.NetNS})
	if err != nil {
		return nil, fmt.Errorf("open nfnetlink socket: %w", err)
	}
	c := &Conn{nl: nl, tap: o.Tap, incoming: make([]byte, datagram)}
	if err := c.setUp(); err != nil {
		return nil, errors.Join(fmt.Errorf("set up nfnetlink socket: %w", err), nl.Close())
	}
	return c, nil
}

func (c *Conn) setUp() (err error) {
	// Kernels before 4.12 know no extended acks; errors then say less.
	_ = c.nl.SetOption(netlink.ExtendedAcknowledge, true)
	if err = c.nl.SetOption(netlink.CapAcknowledge, true); err != nil {
		return err
	}
	if c.raw, err = c.nl.SyscallConn(); err != nil {
		return err
	}
	if c.sendBuffer, err = c.nl.WriteBuffer(); err != nil {
		return err
	}
	c.receiveBuffer, err = c.nl.ReadBuffer()
	return err
}

// Close closes the connection.
func (c *Conn) Close() error { return c.nl.Close() }

// send sends b, one or several messages, as one datagram. If it fails, the
// kernel has seen nothing of it.
func (c *Conn) send(b []byte) error {
	if err := c.growSendBuffer(len(b)); err != nil {
		return err
	}
	var err error
	to := &unix.SockaddrNetlink{Family: unix.AF_NETLINK}
	if closed := c.raw.Control(func(fd uintptr) { err = unix.Sendto(int(fd), b, 0, to) }); closed != nil {
		return closed
	}
	if err != nil {
		return fmt.Errorf("send %d bytes: %w", len(b), err)
	}
	return nil
}

// growSendBuffer makes room for a datagram of size bytes.
func (c *Conn) growSendBuffer(size int) (err error) {
	size += sendOverhead
	if size <= c.sendBuffer {
		return nil
	}
	if err = c.nl.SetWriteBuffer(size); err != nil {
		return fmt.Errorf("grow send buffer to %d bytes: %w", size, err)
	}
	if c.sendBuffer, err = c.nl.WriteBuffer(); err != nil {
		return err
	}
	if c.sendBuffer < size {
		return fmt.Errorf("send buffer of %d bytes, net.core.wmem_max allows %d: %w", size, c.sendBuffer, unix.EMSGSIZE)
	}
	return nil
}

// growReceiveBuffer makes room for size bytes of replies, as far as it is
// allowed to: replies that do not fit are counted as lost.
func (c *Conn) growReceiveBuffer(size int) {
	if size <= c.receiveBuffer {
		return
	}
	_ = c.nl.SetReadBuffer(size)
	if got, err := c.nl.ReadBuffer(); err == nil {
		c.receiveBuffer = got
	}
}

// receive returns the next datagram of the kernel, valid until the next call,
// or EAGAIN where there is none. After ENOBUFS replies are missing, and the
// next call goes on with those that follow.
func (c *Conn) receive() ([]byte, error) {
	var n int
	var from unix.Sockaddr
	var err error
	closed := c.raw.Control(func(fd uintptr) {
		n, from, err = unix.Recvfrom(int(fd), c.incoming, unix.MSG_DONTWAIT|unix.MSG_TRUNC)
	})
	switch {
	case closed != nil:
		return nil, closed
	case err != nil:
		return nil, err
	case n > len(c.incoming):
		return nil, fmt.Errorf("reply of %d bytes: %w", n, unix.EMSGSIZE)
	}
	if sender, ok := from.(*unix.SockaddrNetlink); ok && sender.Pid != 0 {
		return nil, nil // not the kernel
	}
	return c.incoming[:n], nil
}
