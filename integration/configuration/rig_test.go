package configuration

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nlproxy/nlproxy/integration/cluster"
	"github.com/nlproxy/nlproxy/integration/daemon"
)

func TestMain(m *testing.M) {
	daemon.Build()
	cluster.Main(m)
}

// kubeProxy is the path of the real one.
func kubeProxy(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("kube-proxy is not built with -short")
	}
	return cluster.Program(t, "kube-proxy")
}

// ended is how a program ended.
type ended struct {
	code        int
	out, errors string
}

// run runs a program in the network of the tests, until it ends.
func run(t testing.TB, program string, args ...string) ended {
	t.Helper()
	cmd := exec.Command(program, args...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	var failed *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return ended{cmd.ProcessState.ExitCode(), out.String(), complaints.String()}
}

// file makes a file of a configuration for t.
func file(t testing.TB, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
