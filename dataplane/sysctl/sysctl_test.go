package sysctl_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/sysctl"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

const forward = "net/ipv4/ip_forward"

// tree is a directory with one setting.
func tree(t *testing.T, name, value string) (sysctl.Tree, string) {
	t.Helper()
	root := t.TempDir()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
		t.Fatal(err)
	}
	return sysctl.Tree{Root: root}, path
}

// inNamespace runs test where settings of the network are private.
func inNamespace(t *testing.T, test func()) {
	t.Helper()
	if err := labtest.Namespace(t).Do(func() error { test(); return nil }); err != nil {
		t.Fatal(err)
	}
}

func wantValue(t *testing.T, s sysctl.Tree, name, want string) {
	t.Helper()
	if got, err := s.Read(name); got != want || err != nil {
		t.Errorf("%s is %q, %v; want %q", name, got, err, want)
	}
}

func TestSettingIsWrittenOnce(t *testing.T) {
	inNamespace(t, func() {
		var s sysctl.Tree
		for _, want := range []bool{true, false} {
			if changed, err := s.Write(forward, "1"); changed != want || err != nil {
				t.Errorf("changed %t, %v; want %t", changed, err, want)
			}
			wantValue(t, s, forward, "1")
		}
	})
}

func TestEqualValueNeedsNoRightToWrite(t *testing.T) {
	s, path := tree(t, forward, "1\n")
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := s.Write(forward, "1"); changed || err != nil {
		t.Errorf("changed %t, %v; want neither", changed, err)
	}
	if after, err := os.Stat(path); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("file was written, %v", err)
	}
}

func TestShorterValueReplacesAll(t *testing.T) {
	s, _ := tree(t, "net/a", "1024\n")
	if _, err := s.Write("net/a", "7"); err != nil {
		t.Fatal(err)
	}
	wantValue(t, s, "net/a", "7")
}

func TestMissingSetting(t *testing.T) {
	s, path := tree(t, forward, "1\n")
	if _, err := s.Write("net/netfilter/absent", "1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want fs.ErrNotExist", err)
	} else if want := "read sysctl net/netfilter/absent: no such file or directory"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
}

func TestReadOnlyTree(t *testing.T) {
	s, _ := tree(t, forward, "0\n")
	if err := unix.Mount(s.Root, s.Root, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(s.Root, 0); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Mount("", s.Root, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	changed, err := s.Write(forward, "1")
	if changed || !errors.Is(err, sysctl.ErrReadOnly) || errors.Is(err, fs.ErrPermission) {
		t.Errorf("changed %t, %v; want ErrReadOnly", changed, err)
	}
	wantValue(t, s, forward, "0")
}

func TestSettingThatMayNotBeWritten(t *testing.T) {
	const name = "net/ipv4/tcp_available_congestion_control" // of mode 0444, which binds root as well
	var s sysctl.Tree
	if _, err := s.Write(name, "nonesuch"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v, want fs.ErrPermission", err)
	} else if !strings.HasPrefix(err.Error(), "set sysctl "+name+" from ") || errors.Is(err, sysctl.ErrReadOnly) {
		t.Errorf("error %q", err)
	}
}

func TestValueThatTheKernelRefuses(t *testing.T) {
	inNamespace(t, func() {
		if _, err := (sysctl.Tree{}).Write(forward, "much"); !errors.Is(err, unix.EINVAL) {
			t.Errorf("%v, want EINVAL", err)
		}
	})
}

func TestNameStaysBelowTheRoot(t *testing.T) {
	s, _ := tree(t, forward, "1\n")
	for _, name := range []string{"", "/etc/passwd", "../x", "net/../../x"} {
		if _, err := s.Read(name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("read %q: %v, want fs.ErrInvalid", name, err)
		}
		if _, err := s.Write(name, "1"); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("write %q: %v, want fs.ErrInvalid", name, err)
		}
	}
}
