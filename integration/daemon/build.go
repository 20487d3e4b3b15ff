package daemon

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

// binaryVariable is the path of the binary. Whoever sets it tests that one.
const binaryVariable = "NLPROXY_TEST_BINARY"

// product is the package of the binary.
const product = "github.com/nlproxy/nlproxy/cmd/nlproxy"

// Build builds the binary. A TestMain calls it before it enters private
// namespaces. A failure is said here and left to the tests, which miss the
// binary.
func Build() {
	if lab.Inside() || os.Getenv(binaryVariable) != "" {
		return
	}
	path, err := build()
	if err == nil {
		err = os.Setenv(binaryVariable, path)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "daemon: %v\n", err)
	}
}

// Binary is the path of the binary. Without it t is skipped, or failed where
// nothing may be missing.
func Binary(t testing.TB) string {
	t.Helper()
	path := os.Getenv(binaryVariable)
	if path == "" {
		labtest.Missing(t, "the binary of %s, which could not be built", product)
	}
	return path
}

// build builds into the user's cache, where the binary of each copy of the
// sources has a place, and where go finds that it is up to date.
func build() (path string, err error) {
	module, err := run("go", "env", "GOMOD")
	if err != nil {
		return "", err
	}
	dir, err := cached(module)
	if err != nil {
		return "", err
	}
	unlock, err := labtest.Lock(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	path = filepath.Join(dir, "nlproxy")
	_, err = run("go", "build", "-ldflags=-s -w", "-o", path, product)
	return path, err
}

// cached is the place of a module's copy.
func cached(module []byte) (dir string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "nlproxy-tests", fmt.Sprintf("%x", sha256.Sum256(module))[:16]), nil
}

func run(name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, complaints.Bytes())
	}
	return out, nil
}
