package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nlproxy/nlproxy/integration/lab"
)

// shown is how much of a program's output a failed test shows, from the end.
const shown = 16 << 10

// start starts a program in ns, which is killed at the end of t and whose
// output is shown if t fails. A nil environment is this process's.
func start(t testing.TB, ns *lab.Namespace, environment []string, path string, args ...string) *lab.Process {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // the program has its own
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = environment, log, log
	p, err := ns.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("output of %s, process %d:\n%s", filepath.Base(path), p.PID(), tail(log.Name()))
		}
	})
	return p
}

// tail is the end of the file at path, or why there is none.
func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-shown):])
}
