package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ErrForbidden is in the chain of Enter's error where the kernel or its
// security policy keeps this user from making namespaces.
var ErrForbidden = errors.New("making namespaces is not permitted")

// marker is the environment variable that tells a program that was run again
// that it is inside. It is unset at once, so that children do not inherit it.
const marker = "NLPROXY_LAB"

// Inside reports whether this process is one that Enter started. It is no more
// to be asked once Enter has been called.
func Inside() bool { return os.Getenv(marker) != "" }

// Enter calls run in a user, network and mount namespace of its own, where
// this user is root and lo is up, and returns what run returned.
//
// A Go process cannot change its user namespace, so Enter runs the program
// again with the same arguments, input and output, passes signals on and
// returns its exit code: run is called in the second process only, and what
// the program does before Enter is done twice. Where user namespaces are
// forbidden, root keeps its own.
//
// In the second process /sys and /proc/sys/net show the new network namespace.
func Enter(run func() int) (code int, err error) {
	return enter(run, withUser, withoutUser)
}

// EnterAsRoot is Enter, but leaves root its own user namespace, and with it
// the rights that no other has: SO_SNDBUFFORCE, which a transaction larger
// than /proc/sys/net/core/wmem_max needs, is one (sk_setsockopt asks for
// capable(CAP_NET_ADMIN), net/core/sock.c, Linux 6.18).
func EnterAsRoot(run func() int) (code int, err error) {
	return enter(run, withoutUser, withUser)
}

// The namespaces that enter makes.
const (
	withoutUser = syscall.CLONE_NEWNET | syscall.CLONE_NEWNS
	withUser    = withoutUser | syscall.CLONE_NEWUSER
)

func enter(run func() int, first, second uintptr) (code int, err error) {
	if !Inside() {
		return again(first, second)
	}
	if err := errors.Join(os.Unsetenv(marker), settle()); err != nil {
		return 1, fmt.Errorf("set up private namespaces: %w", err)
	}
	return run(), nil
}

// again runs this program in new namespaces, the second kind where the first
// is forbidden, until it ends.
func again(first, second uintptr) (int, error) {
	// The child gets its death signal when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	cmd, err := start(first)
	if forbids(err) {
		cmd, err = start(second)
	}
	if forbids(err) {
		return 1, fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	if err != nil {
		return 1, fmt.Errorf("run this program in private namespaces: %w", err)
	}
	defer passSignals(cmd.Process)()
	return exitCode(cmd.Wait())
}

func start(namespaces uintptr) (*exec.Cmd, error) {
	cmd := &exec.Cmd{
		Path:   "/proc/self/exe",
		Args:   os.Args,
		Env:    append(os.Environ(), marker+"=1"),
		Stdin:  os.Stdin,
		Stdout: os.Stdout,
		Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags: namespaces,
			Pdeathsig:  syscall.SIGKILL,
		},
	}
	if namespaces == withUser {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	return cmd, cmd.Start()
}

// forbids reports whether err is one of those by which kernels say that user
// namespaces are off: EPERM from a policy, ENOSPC from
// /proc/sys/user/max_user_namespaces, EINVAL and ENOSYS from a kernel built
// without them (copy_namespaces and create_user_ns, Linux 6.18).
func forbids(err error) bool {
	for _, e := range []error{unix.EPERM, unix.EACCES, unix.ENOSPC, unix.EUSERS, unix.EINVAL, unix.ENOSYS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// passSignals hands the signals that ask a program to end to p, until the
// returned function is called.
func passSignals(p *os.Process) (stop func()) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGHUP)
	go func() {
		for s := range signals {
			_ = p.Signal(s) // it fails only once p has ended
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}

func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode(), nil
	default:
		return 1, fmt.Errorf("run this program in private namespaces: %w", err)
	}
}

// settle makes new namespaces fit to work in: loopback, and /sys of this
// network namespace. Nothing of the product depends on /sys, and a container
// runtime that hides parts of it keeps it from being mounted again, so that
// failing is left alone.
func settle() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	_ = unix.Mount("sysfs", "/sys", "sysfs", 0, "")
	return loopbackUp()
}

func loopbackUp() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	return nil
}
