package labtest

import (
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// aloneVariable names the test that a process was started to run alone.
const aloneVariable = "NLPROXY_TEST_ALONE"

// exactly is the -test.run pattern that matches the test name and no other.
func exactly(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// untilJustBefore leaves time to report after a process that ran out of it.
func untilJustBefore(deadline time.Time) time.Duration {
	return max(time.Until(deadline)-2*time.Second, time.Second)
}

// output runs cmd, which dies with this process, and returns what it printed.
func output(cmd *exec.Cmd) (string, error) {
	// The death signal is sent when the thread that started cmd ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
