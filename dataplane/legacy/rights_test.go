package legacy

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// withOnly calls Remove with these capabilities and no others.
func (n *node) withOnly(capabilities ...int) (removed []Removed, err error) {
	n.t.Helper()
	var data [2]unix.CapUserData
	for _, c := range capabilities {
		data[c/32].Effective |= 1 << (c % 32)
		data[c/32].Permitted |= 1 << (c % 32)
	}
	var failed error
	// The thread ends with what Do calls.
	err = n.Do(func() error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		if failed = unix.Capset(&header, &data[0]); failed == nil {
			removed, err = Remove(n.t.Context(), n.options)
		}
		return err
	})
	if failed != nil {
		n.t.Fatal(failed)
	}
	return removed, err
}

func TestNetAdminIsAllThatIsNeeded(t *testing.T) {
	for _, f := range model.Families {
		n := newNode(t)
		n.restore(f, small)
		if removed, err := n.withOnly(); !errors.Is(err, fs.ErrPermission) || removed != nil {
			t.Errorf("%s: with no capability removed %v, %v", f, removed, err)
		}
		if removed, err := n.withOnly(unix.CAP_NET_ADMIN); err != nil || len(removed) != 1 {
			t.Errorf("%s: with CAP_NET_ADMIN removed %v, %v", f, removed, err)
		}
	}
}

// tablesOf is a /proc that names these tables, of IPv4.
func tablesOf(names string) fs.FS {
	return fstest.MapFS{namesFiles[model.IPv4]: {Data: []byte(names)}}
}

func TestKernelIsAskedOnlyForTablesThatItNames(t *testing.T) {
	for names, want := range map[string]string{
		"":                              "",
		"raw\nsecurity\n":               "",
		"mangle\n":                      "mangle",
		"mangle\nfilter\nraw\nnat\n":    "nat filter mangle",
		"broute\nnat-of-others\nfilter": "filter",
	} {
		var asked []string
		o := Options{Proc: tablesOf(names), dial: func(f model.Family) (socket, error) {
			if f != model.IPv4 {
				t.Errorf("with tables %q a socket of %s is opened", names, f)
			}
			return note{&asked}, nil
		}}
		removed, err := Remove(t.Context(), o)
		if got := strings.Join(asked, " "); got != want || removed != nil || (err == nil) != (want == "") {
			t.Errorf("with tables %q: asked for %q, want %q; removed %v, %v", names, got, want, removed, err)
		}
	}
}

// note is a socket that notes which tables are asked for, and knows none.
type note struct{ asked *[]string }

func (n note) get(_ int, value []byte) error {
	*n.asked = append(*n.asked, text(value[:nameSize]))
	return unix.ENOENT
}
func (n note) set(int, []byte) error        { return unix.EPERM }
func (n note) replace([]byte, []byte) error { return unix.EPERM }
func (n note) close() error                 { return nil }

func TestKernelWithoutXTablesIsNotAsked(t *testing.T) {
	o := Options{Proc: fstest.MapFS{}, dial: func(model.Family) (socket, error) {
		t.Error("a socket is opened")
		return nil, unix.EPERM
	}}
	if removed, err := Remove(t.Context(), o); removed != nil || err != nil {
		t.Errorf("removed %v, %v", removed, err)
	}
}

// closed is a /proc in which nothing may be read.
type closed struct{}

func (closed) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}

func TestTablesThatCannotBeListedAreAnError(t *testing.T) {
	if _, err := Remove(t.Context(), Options{Proc: closed{}}); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "IPv6") {
		t.Errorf("error %v", err)
	}
}

func TestNegativeWaitIsRefused(t *testing.T) {
	if _, err := Remove(t.Context(), Options{Wait: -time.Second}); err == nil || !strings.Contains(err.Error(), "Wait") {
		t.Errorf("error %v", err)
	}
}

// One table that is refused costs no other, and is named.
func TestTableThatCannotBeWrittenCostsNoOther(t *testing.T) {
	n := newNode(t)
	n.restore(model.IPv4, ipvs)
	n.spy(spy{replace: failOnce(unix.ENOMEM)})
	removed, err := n.remove()
	if len(removed) != 1 || removed[0].Table.Name != "filter" || !errors.Is(err, unix.ENOMEM) || !strings.Contains(fmt.Sprint(err), "ip nat") {
		t.Errorf("removed %v, %v", removed, err)
	}
	if removed := n.mustRemove(); len(removed) != 1 || removed[0].Table.Name != "nat" {
		t.Errorf("then removed %v", removed)
	}
}

func TestCountersThatAreLostAreAnError(t *testing.T) {
	n := newNode(t)
	n.restore(model.IPv4, small)
	n.spy(spy{count: failOnce(unix.EINVAL)})
	removed, err := n.remove()
	if len(removed) != 1 || !errors.Is(err, unix.EINVAL) || !strings.Contains(err.Error(), "counters") {
		t.Errorf("removed %v, %v", removed, err)
	}
}

// failOnce fails the first time.
func failOnce(err error) func() error {
	return func() error {
		now := err
		err = nil
		return now
	}
}
