// Package labtest joins package lab to package testing.
//
// A test binary whose TestMain calls Main runs in a private network of its
// own, and no test of it can reach the host's. Within that:
//   - Namespace gives a test an empty namespace, to enter with Do;
//   - Alone gives a test a whole process in fresh namespaces, for code that
//     makes sockets on goroutines of its own choosing.
package labtest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/integration/lab"
)

// Required reports whether what a test needs must be there, so that its
// absence fails instead of skipping: in CI, where NLPROXY_TEST_REQUIRE=1.
func Required() bool { return os.Getenv("NLPROXY_TEST_REQUIRE") == "1" }

// Missing skips t because something that it needs is not on this machine, or
// fails it where that is Required.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if Required() {
		t.Fatalf("missing: "+format, args...)
	}
	t.Skipf("SKIPPED, missing: "+format, args...)
}

// Tools skips t, as Missing does, unless all these programs are installed.
func Tools(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			Missing(t, "program %s", p)
		}
	}
}

// Main runs m's tests in private namespaces and exits with their outcome. Call
// it from TestMain. Where namespaces are forbidden it runs no test, says so,
// and exits with success unless Required.
func Main(m *testing.M) { main(m, lab.Enter) }

// MainAsRoot is Main, but leaves root the rights that root of a user namespace
// has not (lab.EnterAsRoot): for tests and benchmarks of rulesets so large
// that a socket's buffer must be forced.
func MainAsRoot(m *testing.M) { main(m, lab.EnterAsRoot) }

func main(m *testing.M, enter func(func() int) (int, error)) {
	if isFuzzWorker() {
		os.Exit(m.Run()) // its parent is inside already
	}
	code, err := enter(m.Run)
	switch {
	case errors.Is(err, lab.ErrForbidden) && !Required():
		fmt.Fprintf(os.Stderr, "SKIPPED, no test was run: %v\n", err)
		code = 0
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// isFuzzWorker reports whether go test's fuzzing started this process; flags
// are not parsed before testing.M.Run.
func isFuzzWorker() bool {
	if !flag.Parsed() {
		flag.Parse()
	}
	f := flag.Lookup("test.fuzzworker")
	return f != nil && f.Value.String() == "true"
}

// Namespace gives t an empty network namespace, with lo up, until it ends.
func Namespace(t testing.TB) *lab.Namespace {
	t.Helper()
	n, err := lab.NewNamespace(t.Name())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("close network namespace: %v", err)
		}
	})
	return n
}

// Alone runs the calling test once more, in a process of its own in fresh
// namespaces, and returns true there and only there. The test of the first
// process ends with the outcome of the second:
//
//	func TestDaemon(t *testing.T) {
//		if !labtest.Alone(t) {
//			return
//		}
//		…
func Alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneVariable) == t.Name() {
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.v", "-test.count=1", "-test.run="+exactly(t.Name()))
	if deadline, ok := t.Deadline(); ok {
		cmd.Args = append(cmd.Args, "-test.timeout="+untilJustBefore(deadline).String())
	}
	cmd.Env = append(os.Environ(), aloneVariable+"="+t.Name())
	out, err := output(cmd)
	switch {
	case err != nil:
		t.Fatalf("in a process of its own: %v\n%s", err, out)
	case !strings.Contains(out, "--- PASS: "+t.Name()):
		t.Skipf("in a process of its own:\n%s", out)
	}
	return false
}
