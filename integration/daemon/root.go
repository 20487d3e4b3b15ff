package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// rootBinary is the path of the binary in a Root.
const rootBinary = "/nlproxy"

// A Root is a file system that holds what a test puts there.
type Root struct{ dir string }

// NewRoot makes a Root for t that holds the binary, /proc and /sys. The caller is
// in a mount namespace of its own.
func NewRoot(t testing.TB) *Root {
	t.Helper()
	r := NewEmptyRoot(t)
	r.Write(t, rootBinary, "")
	for from, to := range map[string]string{Binary(t): rootBinary, "/proc": "/proc", "/sys": "/sys"} {
		r.Bind(t, from, to)
	}
	return r
}

// NewEmptyRoot makes a Root for t. The caller is in a mount namespace of its own.
func NewEmptyRoot(t testing.TB) *Root {
	t.Helper()
	dir, err := os.MkdirTemp("", "root")
	if err != nil {
		t.Fatal(err)
	}
	// A folder that is emptied with all that is below it would take what is
	// mounted there along.
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		t.Fatalf("mount an empty file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return &Root{dir: dir}
}

// Bind shows a folder, or a file over one that is there, at a path of r.
func (r *Root) Bind(t testing.TB, from, to string) {
	t.Helper()
	to = r.Path(to)
	if _, err := os.Stat(to); err != nil {
		if err := os.Mkdir(to, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		t.Fatalf("mount %s at %s: %v", from, to, err)
	}
}

// Path is where the file that is at name in r is for others.
func (r *Root) Path(name string) string { return filepath.Join(r.dir, name) }

// Write puts a file there and returns its path in r.
func (r *Root) Write(t testing.TB, name, content string) string {
	t.Helper()
	path := r.Path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return filepath.Join("/", name)
}
