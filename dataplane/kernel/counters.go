package kernel

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// From linux/netfilter/nfnetlink_acct.h, 6.18.
const (
	acctNew     = unix.NFNL_SUBSYS_ACCT<<8 | 0 // NFNL_MSG_ACCT_NEW
	acctGet     = unix.NFNL_SUBSYS_ACCT<<8 | 1 // NFNL_MSG_ACCT_GET
	acctName    = 1                            // NFACCT_NAME
	acctPackets = 2                            // NFACCT_PKTS
	acctBytes   = 3                            // NFACCT_BYTES
	acctMaxName = 31                           // NFACCT_NAME_MAX, less the zero byte
)

// EnsureCounters makes those nfnetlink_acct objects that are missing and
// returns the ones of names that exist then, in their order. A kernel without
// nfnetlink_acct has none, which is no error. Counts of existing objects stay.
//
// The error joins one for each name that could not be made.
func (c *Conn) EnsureCounters(names []string) (have []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, err := c.countersKnown(); err != nil || !known {
		return nil, err
	}
	var errs []error
	for _, name := range names {
		if err := c.ensureCounter(name); err != nil {
			errs = append(errs, fmt.Errorf("make counter %q: %w", name, err))
			continue
		}
		have = append(have, name)
	}
	return have, errors.Join(errs...)
}

// countersKnown reports whether the kernel has nfnetlink_acct: for a subsystem
// that it lacks, it says EINVAL (nfnetlink_rcv_msg in
// net/netfilter/nfnetlink.c, 4.19 to 6.18).
func (c *Conn) countersKnown() (bool, error) {
	err := c.query(header{kind: acctGet, flags: unix.NLM_F_DUMP}, nil, func(message) {})
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EOPNOTSUPP):
		return false, nil
	}
	return false, fmt.Errorf("list counters: %w", err)
}

// ensureCounter makes a counter. The kernel says EBUSY if it exists
// (nfnl_acct_new in net/netfilter/nfnetlink_acct.c, 6.18).
func (c *Conn) ensureCounter(name string) error {
	if len(name) > acctMaxName {
		return fmt.Errorf("longer than %d bytes: %w", acctMaxName, unix.ENAMETOOLONG)
	}
	h := header{kind: acctNew, flags: unix.NLM_F_CREATE}
	err := c.query(h, appendString(nil, acctName, name), func(message) {})
	if errors.Is(err, unix.EBUSY) {
		return nil
	}
	return err
}

// Counter returns what an nfnetlink_acct object has counted. If there is none
// of that name, errors.Is(err, fs.ErrNotExist).
func (c *Conn) Counter(name string) (packets, bytes uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err = c.query(header{kind: acctGet}, appendString(nil, acctName, name), func(m message) {
		packets = number(attribute(m.body(), acctPackets))
		bytes = number(attribute(m.body(), acctBytes))
	})
	if err != nil {
		return 0, 0, fmt.Errorf("read counter %q: %w", name, err)
	}
	return packets, bytes, nil
}
