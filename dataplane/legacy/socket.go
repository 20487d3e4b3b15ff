package legacy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// The socket options of x_tables: IPT_SO_* of linux/netfilter_ipv4/ip_tables.h,
// and with the same numbers IP6T_SO_* of linux/netfilter_ipv6/ip6_tables.h.
const (
	setReplace  = 64
	setCounters = 65
	getInfo     = 64
	getEntries  = 65
)

// socket asks and tells x_tables of one family.
type socket interface {
	// get has value filled in, which holds the request.
	get(option int, value []byte) error
	set(option int, value []byte) error
	// replace is set for setReplace. The counters of what is replaced are
	// written to old.
	replace(value, old []byte) error
	close() error
}

// levels are those of the options of a socket, by family.
var levels = map[model.Family]int{model.IPv4: unix.SOL_IP, model.IPv6: unix.SOL_IPV6}

// ipSocket is a socket of IP. Any kind will do. A datagram socket needs no
// privilege to be made, a raw one CAP_NET_RAW; the options need CAP_NET_ADMIN in
// the user namespace that owns the network namespace (do_ipt_get_ctl and
// do_ipt_set_ctl, net/ipv4/netfilter/ip_tables.c, 6.18; IPv6 alike).
type ipSocket struct {
	fd, level int
}

func dial(f model.Family) (socket, error) {
	if bits.UintSize != 64 {
		return nil, errors.New("legacy tables can be read by 64-bit programs only")
	}
	fd, err := unix.Socket(int(f), unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open socket: %w", err)
	}
	return ipSocket{fd, levels[f]}, nil
}

func (s ipSocket) close() error { return unix.Close(s.fd) }

func (s ipSocket) get(option int, value []byte) error {
	size := uint32(len(value))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd), uintptr(s.level), uintptr(option),
		uintptr(unsafe.Pointer(unsafe.SliceData(value))), uintptr(unsafe.Pointer(&size)), 0)
	return result(errno)
}

func (s ipSocket) set(option int, value []byte) error {
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(s.fd), uintptr(s.level), uintptr(option),
		uintptr(unsafe.Pointer(unsafe.SliceData(value))), uintptr(len(value)), 0)
	return result(errno)
}

func (s ipSocket) replace(value, old []byte) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(unsafe.SliceData(old))
	binary.NativeEndian.PutUint64(value[countersAddress:], uint64(uintptr(unsafe.Pointer(unsafe.SliceData(old)))))
	return s.set(setReplace, value)
}

func result(errno unix.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}
