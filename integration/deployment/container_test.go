package deployment

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab"
)

// A container is the image as a node runs it: a root that holds the image, what
// is mounted there, and nothing else, read-only as /sys is and, unless it is
// privileged, /proc/sys.
type container struct {
	*daemon.Root
	image daemon.Image
}

// newContainer makes a container with these files besides, which are volumes.
// The caller is in a mount namespace of its own.
func newContainer(t *testing.T, volumes map[string]string, privileged bool) *container {
	t.Helper()
	c := &container{daemon.NewEmptyRoot(t), daemon.TheImage(t)}
	for _, path := range c.image.Files(t) {
		c.mount(t, path)
	}
	for path, content := range volumes {
		c.Write(t, path, content)
	}
	for _, path := range []string{"/proc", "/sys"} {
		c.Bind(t, path, path)
	}
	readOnly := []string{"/sys", "/"}
	if !privileged {
		c.Bind(t, c.Path("/proc/sys"), "/proc/sys")
		readOnly = append([]string{"/proc/sys"}, readOnly...)
	}
	for _, path := range readOnly {
		if err := unix.Mount("", c.Path(path), "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Fatalf("make %s read-only: %v", path, err)
		}
	}
	return c
}

// mount shows a file of the image. A link is one in c too.
func (c *container) mount(t *testing.T, path string) {
	t.Helper()
	from := filepath.Join(c.image.Root, path)
	to, err := os.Readlink(from)
	if err != nil {
		c.Write(t, path, "")
		c.Bind(t, from, path)
		return
	}
	if err := os.MkdirAll(filepath.Dir(c.Path(path)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, c.Path(path)); err != nil {
		t.Fatal(err)
	}
}

// confine lets programs that this thread starts have no capability but
// CAP_NET_ADMIN, and gain none, as a container runtime does.
func confine() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if c == unix.CAP_NET_ADMIN {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err != nil && err != unix.EINVAL { // which is for one that this kernel does not know
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// A running container's process.
type running struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // valid once ended is closed
	log   log
}

// log is what a process prints, to be read at any time.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start runs a command in c, as root of it, with CAP_NET_ADMIN alone.
func (c *container) start(t *testing.T, ns *lab.Namespace, command []string) *running {
	t.Helper()
	return startConfined(t, ns, c.cmd(command))
}

// cmd is a command in c.
func (c *container) cmd(command []string) *exec.Cmd {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.Path("/")}
	return cmd
}

// startConfined starts a program with CAP_NET_ADMIN alone. It is killed at the
// end of t.
func startConfined(t *testing.T, ns *lab.Namespace, cmd *exec.Cmd) *running {
	t.Helper()
	r := &running{cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &r.log, &r.log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error, 1)
	go func() {
		defer close(r.ended)
		r.err = ns.Do(func() error { // on a thread that ends with it
			err := confine()
			if err == nil {
				err = cmd.Start()
			}
			started <- err
			if err != nil {
				return err
			}
			return cmd.Wait()
		})
	}()
	if err := <-started; err != nil {
		t.Fatalf("start %s: %v", cmd, err)
	}
	t.Cleanup(func() { r.kill(t) })
	return r
}

// kill ends r at once, if it has not ended.
func (r *running) kill(t *testing.T) {
	_ = r.cmd.Process.Kill() // it fails only once it has ended
	<-r.ended
	if t.Failed() {
		t.Logf("%s printed:\n%s", strings.Join(r.cmd.Args, " "), &r.log)
	}
}

// stop asks r to end, and fails t unless it ends well.
func (r *running) stop(t *testing.T) {
	t.Helper()
	if err := r.cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if <-r.ended; r.err != nil {
		t.Errorf("after SIGTERM: %v", r.err)
	}
}

// checkRights fails t unless r has CAP_NET_ADMIN, no other capability, and no
// way to gain one.
func (r *running) checkRights(t *testing.T) {
	t.Helper()
	status := readStatus(t, r.cmd.Process.Pid)
	only := fmt.Sprintf("%016x", uint64(1)<<unix.CAP_NET_ADMIN)
	for field, want := range map[string]string{"CapPrm": only, "CapEff": only, "CapBnd": only, "NoNewPrivs": "1"} {
		if got := status[field]; got != want {
			t.Errorf("%s of the container is %s, want %s", field, got, want)
		}
	}
}

// readStatus reads /proc/PID/status (proc_pid_status(5)).
func readStatus(t *testing.T, pid int) map[string]string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	status := map[string]string{}
	for line := range strings.Lines(string(text)) {
		field, value, _ := strings.Cut(line, ":")
		status[field] = strings.TrimSpace(value)
	}
	return status
}
