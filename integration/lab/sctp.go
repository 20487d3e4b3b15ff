package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// HasSCTP reports whether the kernel has SCTP.
func HasSCTP() bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP)
	if err != nil {
		return false
	}
	return unix.Close(fd) == nil
}

// listenSCTP listens on a one-to-one SCTP socket. Package net knows nothing of
// SCTP but takes any stream socket of an internet family for TCP (newFileFD,
// net/file_unix.go, Go 1.26), which is right for reads, writes, deadlines and
// addresses.
func listenSCTP(ns *Namespace, at netip.AddrPort) (l net.Listener, err error) {
	err = withSCTP(ns, at, func(fd int, file *os.File) error {
		if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
			return os.NewSyscallError("listen", err)
		}
		l, err = net.FileListener(file)
		return err
	})
	return l, err
}

// dialSCTP connects a one-to-one SCTP socket. The kernel bounds the wait by
// the socket's send timeout (sctp_connect, net/sctp/socket.c, Linux 6.18).
func dialSCTP(ns *Namespace, from, to netip.AddrPort, deadline time.Time) (conn net.Conn, err error) {
	err = withSCTP(ns, from, func(fd int, file *os.File) error {
		wait := unix.NsecToTimeval(max(time.Until(deadline), time.Microsecond).Nanoseconds())
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &wait); err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
		if err := unix.Connect(fd, sockaddr(to)); err != nil {
			return os.NewSyscallError("connect", err)
		}
		conn, err = net.FileConn(file)
		return err
	})
	return conn, err
}

// withSCTP calls fn, in ns, with a new socket that is bound to local and
// closed afterwards; package net duplicates what it keeps.
func withSCTP(ns *Namespace, local netip.AddrPort, fn func(fd int, file *os.File) error) error {
	family := unix.AF_INET6
	if local.Addr().Is4() {
		family = unix.AF_INET
	}
	return ns.Do(func() (err error) {
		fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_SCTP)
		if err != nil {
			return fmt.Errorf("open an SCTP socket: %w", err)
		}
		file := os.NewFile(uintptr(fd), "sctp")
		defer func() { err = errors.Join(err, file.Close()) }()
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
		if err := unix.Bind(fd, sockaddr(local)); err != nil {
			return os.NewSyscallError("bind", err)
		}
		return fn(fd, file)
	})
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
	}
	return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
}
