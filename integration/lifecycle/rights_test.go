package lifecycle

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
)

// readOnly lets nobody write what is at a path, nor what is mounted there.
func readOnly(t *testing.T, path string) {
	t.Helper()
	if err := unix.Mount(path, path, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", path, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
}

// confine lets programs that this thread starts have no capability but one.
func confine(capability uintptr) error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if c == capability {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err != nil && err != unix.EINVAL { // which is for one that this kernel does not know
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	return nil
}

// checkRights fails t unless a process has this capability and no other.
func checkRights(t *testing.T, pid int, capability uint) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"CapPrm", "CapEff", "CapBnd"} {
		if want := fmt.Sprintf("\n%s:\t%016x\n", kind, uint64(1)<<capability); !strings.Contains(string(status), want) {
			t.Errorf("not the capabilities %q:\n%s", want, status)
		}
	}
}

// startConfined starts a daemon that has CAP_NET_ADMIN alone. stop asks it to
// end, waits, and returns its log.
func startConfined(t *testing.T, ns *lab.Namespace, root *daemon.Root) (stop func() string) {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command("/nlproxy", "run", "--logging-format=json", "--manifests=/manifests", "--config=/config.yaml")
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root.Path("/"), Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 2)
	ended := make(chan struct{})
	var outcome error
	go func() {
		defer close(ended)
		outcome = ns.Do(func() error { // on a thread that ends with it
			err := confine(unix.CAP_NET_ADMIN)
			if err == nil {
				err = cmd.Start()
			}
			if started <- err; err != nil {
				return err
			}
			return cmd.Wait()
		})
		started <- outcome
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it fails only once it has ended
		<-ended
		if t.Failed() {
			t.Logf("log of nlproxy:\n%s", log.String())
		}
	})
	checkRights(t, cmd.Process.Pid, unix.CAP_NET_ADMIN)
	return func() string {
		if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
			t.Error(err)
		}
		if <-ended; outcome != nil {
			t.Errorf("nlproxy ended with %v", outcome)
		}
		return log.String()
	}
}

// This is a container without privileges, but for the capability.
func TestServesWithNetAdminAloneAndNothingToWrite(t *testing.T) {
	if !labtest.Alone(t) {
		return
	}
	r := newRig(t)
	web := r.balanced()
	r.put(t, "web.yaml", objects.Documents(t, web))
	root := daemon.NewRoot(t)
	root.Write(t, "config.yaml", strings.Replace(daemon.Configuration(10*time.Millisecond),
		"maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s", "maxPerCore: 2147483647, tcpEstablishedTimeout: 1001s, udpTimeout: 30s", 1))
	root.Write(t, "manifests/.keep", "")
	if err := unix.Mount(r.manifests, root.Path("/manifests"), "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	readOnly(t, root.Path("/proc/sys"))
	readOnly(t, root.Path("/sys"))
	if err := unix.Mount("", root.Path("/"), "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	stop := startConfined(t, r.Self.Namespace, root)
	labtest.Becomes(t, r.Pods[0], "tcp", web.ClusterIP(), labtest.By("pod-2", "pod-3", "remote-1"))
	labtest.Answers(t, r.Pods[0], "tcp", web.ClusterIP(), "pod-2", "pod-3", "remote-1")
	labtest.Answers(t, r.Outside, "tcp", web.NodePort(r.Self.IPv4()), "pod-2", "pod-3", "remote-1")

	web.Endpoints = objects.At(r.Remote[1])
	r.put(t, "web.yaml", objects.Documents(t, web))
	labtest.Becomes(t, r.Pods[0], "tcp", web.ClusterIP(), labtest.By("remote-2"))
	log := stop()
	for setting, want := range map[string]int{
		"net/netfilter/nf_conntrack_max":                     1, // which is the node's
		"net/netfilter/nf_conntrack_tcp_timeout_established": 1,
		"net/netfilter/nf_conntrack_udp_timeout":             0, // is as it is wanted
	} {
		if got := strings.Count(log, `"setting":"`+setting+`"`); got != want {
			t.Errorf("%d warnings about %s, want %d", got, setting, want)
		}
	}
}
