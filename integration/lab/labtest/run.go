package labtest

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/integration/lab"
)

// Current is the namespace of the process, as a value.
func Current(t testing.TB) *lab.Namespace {
	t.Helper()
	ns, err := lab.CurrentNamespace("current")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	return ns
}

// Run is what a program printed that ran in ns with this input. One that is
// not installed skips t, as Missing does; one that fails fails t.
func Run(t testing.TB, ns *lab.Namespace, input, program string, args ...string) string {
	t.Helper()
	Tools(t, program)
	cmd := exec.Command(program, args...)
	cmd.Stdin = strings.NewReader(input)
	var out []byte
	err := ns.Do(func() (err error) {
		out, err = cmd.Output()
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v%s", cmd, err, complaint(err))
	}
	return string(out)
}

// complaint is what the program that failed with err printed about it.
func complaint(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return "\n" + string(exit.Stderr)
	}
	return ""
}
