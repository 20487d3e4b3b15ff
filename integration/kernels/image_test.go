package kernels

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tools are what tests run beside what they test.
var tools = []string{"nft", "nfacct", "conntrack", "ipset", "ip",
	"iptables-nft", "iptables-nft-save", "iptables-nft-restore", "ip6tables-nft", "ip6tables-nft-save", "ip6tables-nft-restore",
	"iptables-legacy", "iptables-legacy-save", "iptables-legacy-restore", "ip6tables-legacy", "ip6tables-legacy-save", "ip6tables-legacy-restore"}

// modules are the parts of a kernel that are of use here.
var modules = []string{"net", "lib", "crypto", "arch", "drivers/net/dummy.ko*", "drivers/net/veth.ko*"}

// image is a file system in memory that the kernel is to find when it starts.
type image struct {
	t *testing.T
	// root is its root directory on this machine, busybox the program that it
	// is made with and runs on.
	root, busybox string
}

func newImage(t *testing.T, busybox string) image {
	t.Helper()
	i := image{t, t.TempDir(), busybox}
	for _, dir := range []string{"bin", "sbin", "dev", "proc", "sys", "tmp", "run", "root"} {
		i.must(os.MkdirAll(i.path(dir), 0o755))
	}
	i.copy(busybox, "bin/busybox")
	i.must(os.Symlink("/bin/busybox", i.path("sbin/modprobe"))) // which the kernel runs
	return i
}

func (i image) path(inside string) string { return filepath.Join(i.root, inside) }

func (i image) must(err error) {
	i.t.Helper()
	if err != nil {
		i.t.Fatal(err)
	}
}

// copy copies a file or folder of this machine, what links lead to in their
// place.
func (i image) copy(from, to string) {
	i.t.Helper()
	i.must(os.MkdirAll(filepath.Dir(i.path(to)), 0o755))
	i.must(run("/", "cp", "-rL", from, i.path(to)))
}

// addTools copies tools of this machine with the libraries that they load.
func (i image) addTools() {
	i.t.Helper()
	copied := map[string]bool{}
	once := func(file string) {
		if !copied[file] {
			copied[file] = true
			i.copy(file, file)
		}
	}
	for _, name := range tools {
		link, err := exec.LookPath(name)
		i.must(err)
		program, err := filepath.EvalSymlinks(link)
		i.must(err)
		once(program)
		if link != program {
			i.must(os.MkdirAll(filepath.Dir(i.path(link)), 0o755))
			i.must(errors.Join(os.RemoveAll(i.path(link)), os.Symlink(program, i.path(link))))
		}
		libraries, err := exec.Command("ldd", program).Output()
		i.must(err)
		for _, library := range regexp.MustCompile(`/\S+`).FindAllString(string(libraries), -1) {
			once(library)
		}
	}
	extensions, err := filepath.Glob("/usr/lib/*/xtables")
	i.must(err)
	for _, dir := range extensions {
		i.copy(dir, dir)
	}
}

// addModules copies modules of the kernel in the folder of a package, and
// returns the kernel's release.
func (i image) addModules(kernel string) (release string) {
	i.t.Helper()
	folders, err := filepath.Glob(filepath.Join(kernel, "lib/modules/*"))
	i.must(err)
	if len(folders) != 1 {
		i.t.Fatalf("%s has modules of %d kernels", kernel, len(folders))
	}
	release = filepath.Base(folders[0])
	for _, part := range modules {
		found, err := filepath.Glob(filepath.Join(folders[0], "kernel", part))
		i.must(err)
		for _, from := range found {
			i.copy(from, strings.TrimPrefix(from, kernel))
		}
	}
	for _, list := range []string{"modules.builtin", "modules.order"} {
		i.copy(filepath.Join(folders[0], list), filepath.Join("lib/modules", release, list))
	}
	i.must(run(i.root, "find", ".", "-name", "*.ko.xz", "-exec", i.busybox, "unxz", "{}", "+"))
	i.must(run(i.root, i.busybox, "depmod", "-b", i.root, release))
	return release
}

// addScript makes the script that the kernel starts first.
func (i image) addScript(text string) {
	i.t.Helper()
	i.must(os.WriteFile(i.path("init"), []byte(text), 0o755))
}

// pack makes the file that the kernel is started with.
func (i image) pack() (file string) {
	i.t.Helper()
	file = filepath.Join(i.t.TempDir(), "initrd")
	out, err := os.Create(file)
	i.must(err)
	defer out.Close()
	var complaints bytes.Buffer
	cmd := exec.Command("sh", "-c", "find . | "+i.busybox+" cpio -o -H newc")
	cmd.Dir, cmd.Stdout, cmd.Stderr = i.root, out, &complaints
	if err := cmd.Run(); err != nil {
		i.t.Fatal(fmt.Errorf("%s: %w\n%s", cmd, err, complaints.Bytes()))
	}
	return file
}
