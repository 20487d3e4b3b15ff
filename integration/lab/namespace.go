package lab

import (
	"context"
	"fmt"
	"net"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// A Namespace is a network namespace, held open. It is safe for use by many
// goroutines.
type Namespace struct {
	name   string
	handle netns.NsHandle
}

// NewNamespace makes an empty network namespace with lo up. The name is for
// errors only.
func NewNamespace(name string) (*Namespace, error) {
	n := &Namespace{name: name, handle: netns.None()}
	err := onOwnThread(func() (err error) {
		// netns.New moves the calling thread, which ends with this function.
		if n.handle, err = netns.New(); err != nil {
			return err
		}
		return loopbackUp()
	})
	if err != nil {
		return nil, fmt.Errorf("make network namespace %s: %w", name, err)
	}
	return n, nil
}

// CurrentNamespace is the namespace of the calling thread: outside of
// Namespace.Do, that of the process.
func CurrentNamespace(name string) (*Namespace, error) {
	handle, err := netns.Get()
	if err != nil {
		return nil, fmt.Errorf("open network namespace %s: %w", name, err)
	}
	return &Namespace{name: name, handle: handle}, nil
}

func (n *Namespace) String() string { return n.name }

// Close lets go of n. The kernel keeps the namespace until the last socket and
// process in it is gone.
func (n *Namespace) Close() error { return n.handle.Close() }

// Do calls fn in n and returns its error. Sockets that fn makes, programs that
// it starts and files of /proc/sys/net that it opens are those of n, and stay
// so.
//
// fn runs on a goroutine that owns its thread. Goroutines that fn starts are
// not in n, nor is anything that fn leaves behind to make sockets later: only
// what happens before fn returns, on its own goroutine, is. A program that is to
// outlive fn is started by Start, and code that makes sockets at any time goes
// into a process of its own.
//
// If fn ends its goroutine (runtime.Goexit, which testing.T's FailNow calls),
// the caller's ends too.
func (n *Namespace) Do(fn func() error) error {
	return onOwnThread(func() error {
		if err := netns.Set(n.handle); err != nil {
			return fmt.Errorf("enter network namespace %s: %w", n.name, err)
		}
		return fn()
	})
}

// onOwnThread runs fn on a thread that does nothing else before or after, so
// that fn may change the thread's namespaces.
func onOwnThread(fn func() error) (err error) {
	done := make(chan struct{})
	returned := false
	go func() {
		defer close(done)
		// Never unlocked: the runtime ends the thread with the goroutine.
		runtime.LockOSThread()
		err = fn()
		returned = true
	}()
	<-done
	if !returned {
		runtime.Goexit()
	}
	return err
}

// Listen is net.Listen in n. The address is numeric.
func (n *Namespace) Listen(network, address string) (listener net.Listener, err error) {
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	err = n.Do(func() error {
		listener, err = config.Listen(context.Background(), network, address)
		return err
	})
	return listener, err
}

// ListenPacket is net.ListenPacket in n. The address is numeric.
func (n *Namespace) ListenPacket(network, address string) (conn net.PacketConn, err error) {
	err = n.Do(func() error {
		conn, err = net.ListenPacket(network, address)
		return err
	})
	return conn, err
}

// Dial is dialer.DialContext in n. The address is numeric: net looks names up
// on goroutines of its own, which are not in n.
func (n *Namespace) Dial(ctx context.Context, dialer net.Dialer, network, address string) (conn net.Conn, err error) {
	err = n.Do(func() error {
		conn, err = dialer.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// DialContext is Dial with a zero dialer, as http.Transport and rest.Config
// want it.
func (n *Namespace) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return n.Dial(ctx, net.Dialer{}, network, address)
}

// Netlink opens a route netlink handle in n. The caller closes it.
func (n *Namespace) Netlink() (*netlink.Handle, error) {
	handle, err := netlink.NewHandleAt(n.handle, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open route netlink in %s: %w", n.name, err)
	}
	return handle, nil
}
