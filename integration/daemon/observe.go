package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/integration/lab"
)

// Generation is the number that the kernel gives the ruleset of ns, another
// after each transaction.
func Generation(t testing.TB, ns *lab.Namespace) (generation uint32) {
	t.Helper()
	err := ns.Do(func() error {
		conn, err := kernel.Dial(kernel.Options{})
		if err != nil {
			return err
		}
		defer conn.Close()
		generation, err = conn.Generation()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return generation
}

// CheckNoChild fails t if d has, or ever had, a child process.
func (d *Daemon) CheckNoChild(t testing.TB) {
	t.Helper()
	found, err := children(d.PID())
	if err != nil {
		t.Fatal(err)
	}
	if found != "" {
		t.Errorf("nlproxy has a child: %s", found)
	}
}

// children says what is known of the children of a process, nothing if it
// never had one.
//
// Living ones are in /proc/PID/task/TID/children. Those that have ended left
// their page faults, which no program does without, in fields 11 and 13 of
// /proc/PID/stat (proc_pid_stat(5)).
func children(pid int) (found string, err error) {
	proc := fmt.Sprintf("/proc/%d", pid)
	lists, err := filepath.Glob(proc + "/task/*/children")
	if err != nil || len(lists) == 0 {
		return "", fmt.Errorf("no list of the children of process %d: %v", pid, err)
	}
	for _, list := range lists {
		living, err := os.ReadFile(list)
		// A thread may have ended.
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ESRCH) {
			return "", err
		}
		if len(living) > 0 {
			return fmt.Sprintf("%s: %s", list, living), nil
		}
	}
	stat, err := os.ReadFile(proc + "/stat")
	if err != nil {
		return "", err
	}
	// The name, field 2, may hold blanks, and ends with the last parenthesis.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if minor, major := fields[11-3], fields[13-3]; minor != "0" || major != "0" {
		return fmt.Sprintf("one that has ended, after %s and %s page faults", minor, major), nil
	}
	return "", nil
}
