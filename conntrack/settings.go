package conntrack

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/nlproxy/nlproxy/dataplane/sysctl"
	"go.uber.org/zap"
)

// Tree reads and writes settings of the kernel, as sysctl.Tree does: a value
// that is there is not written again, and errors tell fs.ErrNotExist,
// fs.ErrPermission, syscall.EROFS and syscall.EINVAL apart.
type Tree interface {
	Read(name string) (string, error)
	Write(name, value string) (changed bool, err error)
}

// Reason is why a setting is not as it should be.
type Reason string

const (
	// Absent: the kernel, or this network namespace, does not have it.
	Absent Reason = "absent"
	// ReadOnly: it is on a file system that is mounted read-only.
	ReadOnly Reason = "read-only"
	// Forbidden: this process may not write it, or not from its network
	// namespace.
	Forbidden Reason = "forbidden"
	// Refused: the kernel does not accept the value.
	Refused Reason = "refused"
	// Failed: anything else; a hash table that finds no memory, for one.
	Failed Reason = "failed"
)

// cause says which errors have a reason, and what an operator can do about it.
type cause struct {
	err    error // nil for any
	reason Reason
	advice string
}

// reasons are searched in this order.
var reasons = []cause{
	{fs.ErrNotExist, Absent, "load the kernel module nf_conntrack"},
	{syscall.EROFS, ReadOnly, "mount it writable, or set the value on the node"},
	{fs.ErrPermission, Forbidden, "set the value on the node: it takes CAP_NET_ADMIN and, for a limit, the node's own network namespace"},
	{errors.ErrUnsupported, Forbidden, "set the value on the node, in its own network namespace"},
	{syscall.EINVAL, Refused, "configure a value that the kernel accepts"},
	{nil, Failed, "set the value on the node"},
}

// Unwritable is a setting that is not as it should be and that has been given
// up, or that is still not there once rules are.
type Unwritable struct {
	// Setting is the file, below /proc/sys or /sys.
	Setting string
	Wanted  int64
	// Current is empty if it could not be read.
	Current string
	Reason  Reason
}

// ApplierOptions are for NewApplier.
type ApplierOptions struct {
	Limits Limits
	// Cores is the number of the node's CPUs, as Cores counts them. Less than 1
	// is 1.
	Cores int
	// Sysctls is /proc/sys, and Sysfs is /sys; nil for these themselves.
	Sysctls, Sysfs Tree
	// Logger gets what was changed, and one warning for each setting that cannot
	// be; nil for none.
	Logger *zap.Logger
}

// Applier gives connection tracking its settings. It is safe for use by many
// goroutines.
//
// Each setting is on its own: none waits for another or fails with it. None is
// worth stopping for, so that no error is returned: the node serves without
// them, if less well.
type Applier struct {
	sysctls, sysfs Tree
	liberal        bool
	log            *zap.Logger

	mu      sync.Mutex
	pending []setting
	applied bool
	// unwritable is by setting.name.
	unwritable map[string]refusal
}

// refusal is a setting that could not be written.
type refusal struct {
	Unwritable
	setting
}

// NewApplier returns an Applier that has not yet touched anything. The error
// is that of Limits.Validate.
func NewApplier(o ApplierOptions) (*Applier, error) {
	if err := o.Limits.Validate(); err != nil {
		return nil, err
	}
	a := &Applier{
		sysctls: o.Sysctls, sysfs: o.Sysfs, log: o.Logger,
		liberal:    o.Limits.TCPBeLiberal,
		pending:    o.Limits.settings(max(o.Cores, 1)),
		unwritable: make(map[string]refusal),
	}
	if a.sysctls == nil {
		a.sysctls = sysctl.Tree{}
	}
	if a.sysfs == nil {
		a.sysfs = sysctl.Tree{Root: "/sys"}
	}
	if a.log == nil {
		a.log = zap.NewNop()
	}
	return a, nil
}

// Apply writes the settings that are not yet as they should be. A setting that
// is, or that cannot be written, is not looked at again: what somebody else
// sets later stays.
//
// A setting that does not exist is tried again by each Apply, since the kernel
// may load connection tracking only for the first rule that needs it. The
// first Apply is silent about it. So Apply is to be called at the start and
// then after rules were written; it costs nothing once all is settled.
func (a *Applier) Apply() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pending = slices.DeleteFunc(a.pending, func(s setting) bool { return !a.try(s) })
	a.applied = true
}

// Unwritable returns the settings that could not be written and are not as they
// should be, in the order of their names. One that somebody else has put right
// since is none any more.
func (a *Applier) Unwritable() (all []Unwritable) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.unwritable, func(_ string, r refusal) bool { return a.has(r.setting) })
	for _, r := range a.unwritable {
		all = append(all, r.Unwritable)
	}
	slices.SortFunc(all, func(x, y Unwritable) int { return strings.Compare(x.Setting, y.Setting) })
	return all
}

// has reports whether the kernel has s now.
func (a *Applier) has(s setting) bool {
	in := func(t Tree, name string) bool {
		now, err := t.Read(name)
		return err == nil && s.holds(now)
	}
	return in(a.sysctls, s.name) || s.inSysfs != "" && in(a.sysfs, s.inSysfs)
}

// Liberal reports whether packets outside their connection's window belong to
// it nevertheless: the kernel's value or, while it has none, the wanted one.
func (a *Applier) Liberal() bool {
	value, err := a.sysctls.Read(tcpBeLiberal)
	if errors.Is(err, fs.ErrNotExist) {
		return a.liberal
	}
	return err == nil && value != "0"
}

// try makes the kernel have s, and reports whether it is to be tried again.
func (a *Applier) try(s setting) (again bool) {
	failure, err := a.set(s)
	if err == nil {
		delete(a.unwritable, s.name)
		return false
	}
	absent := failure.Reason == Absent
	if absent && !a.applied {
		return true
	}
	if a.unwritable[s.name].Reason != failure.Reason {
		a.unwritable[s.name] = refusal{failure, s}
		a.warn(failure, err)
	}
	return absent
}

// set gives s its value in the first place that takes it. The failure is that
// of the first place that exists.
func (a *Applier) set(s setting) (failure Unwritable, err error) {
	failure, err = a.setIn(a.sysctls, s.name, s)
	if err == nil || s.inSysfs == "" {
		return failure, err
	}
	other, otherErr := a.setIn(a.sysfs, s.inSysfs, s)
	if otherErr == nil || failure.Reason == Absent && other.Reason != Absent {
		return other, otherErr
	}
	return failure, err
}

// setIn gives s its value in one place, unless it has it there.
func (a *Applier) setIn(t Tree, name string, s setting) (Unwritable, error) {
	now, err := t.Read(name)
	if err == nil && !s.holds(now) {
		var changed bool
		if changed, err = t.Write(name, strconv.FormatInt(s.want, 10)); changed {
			a.log.Info("connection tracking: setting changed",
				zap.String("setting", name), zap.String("from", now), zap.Int64("to", s.want))
		}
	}
	if err == nil {
		return Unwritable{}, nil
	}
	return Unwritable{Setting: name, Wanted: s.want, Current: now, Reason: why(err).reason}, err
}

// holds reports whether a value needs no change.
func (s setting) holds(value string) bool {
	now, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return false
	}
	return now == s.want || s.raise && (now > s.want || now == 0)
}

func (a *Applier) warn(u Unwritable, err error) {
	a.log.Warn("connection tracking: setting stays as it is",
		zap.String("setting", u.Setting), zap.String("current", u.Current), zap.Int64("wanted", u.Wanted),
		zap.Error(err), zap.String("advice", why(err).advice))
}

// why returns the cause of an error.
func why(err error) cause {
	return reasons[slices.IndexFunc(reasons, func(c cause) bool { return c.err == nil || errors.Is(err, c.err) })]
}
