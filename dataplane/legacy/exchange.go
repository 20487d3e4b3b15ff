package legacy

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/rules"
)

// entriesHeader is the size of struct ipt_get_entries
// (linux/netfilter_ipv4/ip_tables.h): the table's name, the size of its entries,
// and four bytes that align them. The entries follow.
const entriesHeader = nameSize + 8

// attempts is how often a table is read and written when others change it at
// the same time.
const attempts = 10

// errChanged says that somebody else changed a table while it was read.
var errChanged = errors.New("table keeps being changed by another program")

// read reads a table.
func read(s socket, id rules.Table) (*table, error) {
	i, b, err := readEntries(s, id.Name)
	if err != nil {
		return nil, err
	}
	return unmarshalTable(layouts[id.Family], i, b)
}

// readEntries reads information and entries until they are of one table: the
// kernel says EAGAIN where they differ in size, and nothing where they do not.
func readEntries(s socket, name string) (info, []byte, error) {
	for range attempts {
		i, err := readInfo(s, name)
		if err != nil {
			return i, nil, err
		}
		b := make([]byte, entriesHeader+int(i.size))
		copy(b, name)
		binary.NativeEndian.PutUint32(b[nameSize:], i.size)
		if err := s.get(getEntries, b); errors.Is(err, unix.EAGAIN) {
			continue
		} else if err != nil {
			return i, nil, fmt.Errorf("read entries: %w", err)
		}
		if again, err := readInfo(s, name); err != nil || again == i {
			return i, b[entriesHeader:], err
		}
	}
	return info{}, nil, errChanged
}

func readInfo(s socket, name string) (info, error) {
	b := make([]byte, infoSize)
	copy(b, name)
	if err := s.get(getInfo, b); err != nil {
		return info{}, fmt.Errorf("read information: %w", err)
	}
	return unmarshalInfo(b)
}

// remove takes all leftovers from a table. It returns nil if there are none.
func remove(s socket, id rules.Table) (*Removed, error) {
	for range attempts {
		t, err := read(s, id)
		if err != nil {
			return nil, err
		}
		e := t.edit(id)
		if e.isEmpty() {
			return nil, nil
		}
		if err := e.write(s, id.Name); !errors.Is(err, unix.EAGAIN) {
			return e.outcome(id, err)
		}
	}
	return nil, errChanged
}

// write replaces the table, and then gives the entries that stay the counters
// that they had up to that moment: the new ones start at zero.
func (e *edit) write(s socket, name string) error {
	i, entries := e.marshal()
	old := make([]byte, len(e.entries)*countersSize)
	if err := s.replace(marshalReplace(name, i, entries, e.info.entries), old); err != nil {
		return fmt.Errorf("replace: %w", err)
	}
	if err := s.set(setCounters, marshalCounters(name, e.counters(old))); err != nil {
		return lostCounters{err}
	}
	return nil
}

// lostCounters says that a table was written, but its counters started anew.
type lostCounters struct{ error }

func (l lostCounters) Error() string { return fmt.Sprintf("restore counters: %v", l.error) }
func (l lostCounters) Unwrap() error { return l.error }

// outcome is what is gone after write, which returned err.
func (e *edit) outcome(id rules.Table, err error) (*Removed, error) {
	var lost lostCounters
	if err != nil && !errors.As(err, &lost) {
		return nil, err
	}
	r := e.removed(id)
	return &r, err
}
