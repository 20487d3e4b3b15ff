package cluster

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

// Main is labtest.Main for tests that start a cluster: it first builds the
// programs that are not built yet. That takes minutes, once; not with -short.
func Main(m *testing.M) {
	build()
	labtest.Main(m)
}

// MainAsRoot is Main with labtest.MainAsRoot.
func MainAsRoot(m *testing.M) {
	build()
	labtest.MainAsRoot(m)
}

// programs are the packages of the programs, by name.
var programs = map[string]string{
	"kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
	"kube-proxy":     "k8s.io/kubernetes/cmd/kube-proxy",
	"etcd":           "./cmd/etcd",
}

// build makes the programs in the cache. A failure is said here and left to
// the tests, which miss the program.
func build() {
	flag.Parse()
	if lab.Inside() || testing.Short() {
		return
	}
	if err := buildIfMissing(); err != nil {
		fmt.Fprintf(os.Stderr, "cluster: %v\n", err)
	}
}

func buildIfMissing() (err error) {
	source, cache, err := folders()
	if err != nil {
		return err
	}
	unlock, err := labtest.Lock(cache + ".lock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if _, err := os.Stat(cache); err == nil {
		return nil
	}
	return buildInto(cache, source)
}

// buildInto builds all programs of source into cache, which is there only if
// all of them are.
func buildInto(cache, source string) error {
	fmt.Fprintf(os.Stderr, "cluster: building API server, etcd and kube-proxy into %s, once\n", cache)
	partial := cache + ".partial"
	args := []string{"build", "-ldflags=-s -w", "-o", partial + "/"}
	for _, path := range programs {
		args = append(args, path)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s in %s: %w\n%s", cmd, source, err, out)
	}
	return os.Rename(partial, cache)
}

// Program is the path of a built program; without it t is skipped.
func Program(t testing.TB, name string) string {
	t.Helper()
	_, cache, err := folders()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(cache, name)
	if _, err := os.Stat(path); err != nil {
		labtest.Missing(t, "program %s of module integration/peers is not built", name)
	}
	return path
}

// folders are that of the module with the programs' versions, and that of the
// programs built at these.
func folders() (source, cache string, err error) {
	if source, err = module(); err != nil {
		return "", "", err
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", "", err
	}
	versions := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", "", err
		}
		versions.Write(content)
	}
	return source, filepath.Join(user, "nlproxy-peers", fmt.Sprintf("%x", versions.Sum(nil)[:8])), nil
}

// module finds integration/peers from the working directory, which for a test
// is its package's, upwards.
func module() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		found := filepath.Join(dir, "integration", "peers")
		if _, err := os.Stat(found); err == nil {
			return found, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("integration/peers is not in any folder above the working directory")
		}
	}
}
