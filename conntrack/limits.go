package conntrack

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// The settings of connection tracking. All but hashSize, which is another way
// to what buckets sets, are below /proc/sys; hashSize is below /sys.
const (
	tableMax              = "net/netfilter/nf_conntrack_max"
	buckets               = "net/netfilter/nf_conntrack_buckets"
	hashSize              = "module/nf_conntrack/parameters/hashsize"
	tcpEstablishedTimeout = "net/netfilter/nf_conntrack_tcp_timeout_established"
	tcpCloseWaitTimeout   = "net/netfilter/nf_conntrack_tcp_timeout_close_wait"
	tcpBeLiberal          = "net/netfilter/nf_conntrack_tcp_be_liberal"
	udpTimeout            = "net/netfilter/nf_conntrack_udp_timeout"
	udpStreamTimeout      = "net/netfilter/nf_conntrack_udp_timeout_stream"
)

// flowsPerBucket is how many flows share a bucket of the hash table when it is
// as full as it may be. Each flow is in it twice, once for each direction.
const flowsPerBucket = 4

// Limits are wanted settings of connection tracking. A zero leaves the
// kernel's value alone.
type Limits struct {
	// MaxPerCore is how many flows there may be for each CPU, and Min the least
	// in all; Min counts only if MaxPerCore is not 0. They raise the kernel's
	// limit and its hash table, and never lower them.
	MaxPerCore, Min int
	// TCPBeLiberal says that packets outside their connection's window belong
	// to it nevertheless.
	TCPBeLiberal bool
	// How long a flow without a packet is remembered. The kernel counts in
	// seconds; parts of one are rounded up.
	TCPEstablishedTimeout, TCPCloseWaitTimeout, UDPTimeout, UDPStreamTimeout time.Duration
}

// Validate names each field that is negative. What the kernel may refuse is
// left to it.
func (l Limits) Validate() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"MaxPerCore", int64(l.MaxPerCore)},
		{"Min", int64(l.Min)},
		{"TCPEstablishedTimeout", int64(l.TCPEstablishedTimeout)},
		{"TCPCloseWaitTimeout", int64(l.TCPCloseWaitTimeout)},
		{"UDPTimeout", int64(l.UDPTimeout)},
		{"UDPStreamTimeout", int64(l.UDPStreamTimeout)},
	} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("conntrack limits: %s: must not be negative", f.name))
		}
	}
	return errors.Join(errs...)
}

// Max returns how many flows the kernel of a node with this many CPUs should
// be able to track, and whether that is to be set at all. It is no more than
// the kernel accepts (an int; nf_conntrack_standalone.c, Linux 6.18).
func (l Limits) Max(cores int) (n int, set bool) {
	if l.MaxPerCore <= 0 {
		return 0, false
	}
	n = math.MaxInt32
	if cores <= n/l.MaxPerCore {
		n = l.MaxPerCore * cores
	}
	return max(n, min(l.Min, math.MaxInt32)), true
}

// setting is a value that the kernel should have.
type setting struct {
	name string
	// inSysfs is where below /sys the same value is; empty if it is not there.
	inSysfs string
	want    int64
	// raise says that a higher value is as good, and so is 0, which the kernel
	// takes for no limit (__nf_conntrack_alloc, nf_conntrack_core.c, Linux 6.18).
	raise bool
}

// settings returns what l wants on a node with this many CPUs. No value that
// can be wanted is 0.
func (l Limits) settings(cores int) []setting {
	n, _ := l.Max(cores)
	liberal := int64(0)
	if l.TCPBeLiberal {
		liberal = 1
	}
	all := []setting{
		{name: tableMax, want: int64(n), raise: true},
		{name: buckets, inSysfs: hashSize, want: int64(n / flowsPerBucket), raise: true},
		{name: tcpEstablishedTimeout, want: seconds(l.TCPEstablishedTimeout)},
		{name: tcpCloseWaitTimeout, want: seconds(l.TCPCloseWaitTimeout)},
		{name: tcpBeLiberal, want: liberal},
		{name: udpTimeout, want: seconds(l.UDPTimeout)},
		{name: udpStreamTimeout, want: seconds(l.UDPStreamTimeout)},
	}
	return slices.DeleteFunc(all, func(s setting) bool { return s.want == 0 })
}

// seconds returns d in seconds, rounded up.
func seconds(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return n
}
