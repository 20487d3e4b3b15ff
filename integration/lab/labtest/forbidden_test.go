package labtest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// limit lets this process's user namespace hold no more namespaces of a kind,
// until t ends.
func limit(t *testing.T, kind string) {
	t.Helper()
	if m, _ := os.ReadFile("/proc/self/uid_map"); strings.Contains(string(m), "4294967295") {
		t.Skip("SKIPPED: the limit of this user namespace is the host's")
	}
	path := "/proc/sys/user/max_" + kind + "_namespaces"
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(path, before, 0); err != nil {
			t.Error(err)
		}
	})
}

// passingTest runs a test that passes in a process of its own.
func passingTest(require string) (string, error) {
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestPrisoner$", "-test.v")
	cmd.Env = append(os.Environ(), "NLPROXY_TEST_PRISONER=passes", "NLPROXY_TEST_REQUIRE="+require)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestMainLeavesRootItsUserNamespaceWhereNoOtherIsAllowed(t *testing.T) {
	limit(t, "user")
	if out, err := passingTest("1"); err != nil || !strings.Contains(out, "--- PASS: TestPrisoner") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestMainSaysThatItSkipsWhereNamespacesAreForbidden(t *testing.T) {
	limit(t, "user")
	limit(t, "net")
	if out, err := passingTest(""); err != nil || !strings.Contains(out, "SKIPPED") || strings.Contains(out, "PASS") {
		t.Errorf("not required: %v\n%s", err, out)
	}
	if out, err := passingTest("1"); err == nil {
		t.Errorf("required, and yet no failure:\n%s", out)
	}
}
