package kernels

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

// unpacked is the folder with the files of a package of Debian, or of the one
// that it depends on where its name stands for the newest of several. Without
// it t is skipped.
func unpacked(t *testing.T, name string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "nlproxy-kernels", newest(t, name))
	if err := unpackIfMissing(filepath.Base(dir), dir); err != nil {
		labtest.Missing(t, "package %s: %v", name, err)
	}
	return dir
}

// imageName is that of a package that has a kernel in it.
var imageName = regexp.MustCompile(`Depends: (linux-image-\d\S*)`)

// newest is the kernel that a package stands for, or its own name.
func newest(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("apt-cache", "depends", name).Output()
	if err != nil || len(out) == 0 {
		labtest.Missing(t, "package %s: not in the lists of apt", name)
	}
	if found := imageName.FindSubmatch(out); found != nil {
		return string(found[1])
	}
	return name
}

func unpackIfMissing(name, dir string) (err error) {
	unlock, err := labtest.Lock(dir + ".lock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	download, err := os.MkdirTemp("", "nlproxy-kernels-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(download)) }()
	if err := run(download, "apt-get", "download", "-q", "-o", "Acquire::Retries=3", name); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(download, "*.deb"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("apt-get download made the files %q: %w", files, err)
	}
	partial := dir + ".partial"
	if err := errors.Join(os.RemoveAll(partial), run(download, "dpkg", "-x", files[0], partial)); err != nil {
		return err
	}
	return os.Rename(partial, dir)
}

// run runs a program in dir.
func run(dir, program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}
