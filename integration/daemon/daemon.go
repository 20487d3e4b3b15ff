package daemon

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/integration/lab"
)

// patience is how long a daemon may take for anything that is waited for: it
// may meet a server that has to start, and waits for its Node for 30 seconds.
const patience = 90 * time.Second

// A Daemon is a running nlproxy.
type Daemon struct {
	*lab.Process
	log *journal
	// config is the path of its configuration, outside any Root.
	config string
}

// Options say what to run.
type Options struct {
	// Namespace is the node's. It is required.
	Namespace *lab.Namespace
	// Config is a KubeProxyConfiguration, in which {kubeconfig} stands for
	// Kubeconfig.
	Config string
	// Manifests is a folder of manifests, or Kubeconfig the path of a
	// kubeconfig; as the daemon sees them.
	Manifests, Kubeconfig string
	// Root, if set, is all that the daemon sees of the file system.
	Root *Root
	// Environment is what its environment has besides that of the test, or,
	// in a Root, all there is.
	Environment []string
}

// Configuration is the KubeProxyConfiguration of a node of package lab, with
// {kubeconfig} in it. Kube-proxy takes it too.
func Configuration(minSyncPeriod time.Duration) string {
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
hostnameOverride: node1
clusterCIDR: 10.244.0.0/16,fd00:244::/32
iptables: {minSyncPeriod: %s, syncPeriod: 30s}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
clientConnection: {kubeconfig: "{kubeconfig}"}
`, minSyncPeriod)
}

// Start starts nlproxy. It is killed at the end of t, and its log shown if t
// fails.
func Start(t testing.TB, o Options) *Daemon {
	t.Helper()
	cmd, config := command(t, o)
	d := &Daemon{log: newJournal(), config: config}
	cmd.Stdout, cmd.Stderr = d.log, d.log
	var err error
	if d.Process, err = o.Namespace.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.Kill()
		if t.Failed() {
			t.Logf("log of nlproxy, process %d, which ended with %v:\n%s", d.PID(), d.Err(), d.log)
		}
	})
	return d
}

// Configure replaces the configuration of a daemon that has no Root, at once, as
// an update of a mounted ConfigMap does.
func (d *Daemon) Configure(t testing.TB, config string) {
	t.Helper()
	d.ConfigureBy(t, func(path string) error { return os.WriteFile(path, []byte(config), 0o600) })
}

// ConfigureBy is Configure with what make makes at a path, which need not be a
// file.
func (d *Daemon) ConfigureBy(t testing.TB, make func(path string) error) {
	t.Helper()
	if err := make(d.config + ".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(d.config+".new", d.config); err != nil {
		t.Fatal(err)
	}
}

func command(t testing.TB, o Options) (cmd *exec.Cmd, config string) {
	t.Helper()
	text := strings.ReplaceAll(o.Config, "{kubeconfig}", o.Kubeconfig)
	args := []string{"run", "--logging-format=json", "--manifests=" + o.Manifests}
	if o.Root != nil {
		cmd := exec.Command(rootBinary, append(args, "--config="+o.Root.Write(t, "config.yaml", text))...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: o.Root.dir}
		cmd.Dir, cmd.Env = "/", append([]string{}, o.Environment...)
		return cmd, ""
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(Binary(t), append(args, "--config="+path)...)
	cmd.Env = append(os.Environ(), o.Environment...)
	return cmd, path
}

// Synchronised waits until d has made the kernel agree, once more than when it
// or Await was called last, and returns its report.
func (d *Daemon) Synchronised(t testing.TB) Entry {
	t.Helper()
	return d.Await(t, "that it is synchronised", IsReport)
}

// IsReport says whether an entry is the report of a synchronisation.
func IsReport(e Entry) bool { return e.Message == "synchronised" }

// Await waits for an entry that matches, after the one that it returned last,
// and returns it.
func (d *Daemon) Await(t testing.TB, what string, match func(Entry) bool) Entry {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for ended := false; ; {
		e, found, changed := d.log.next(match)
		switch {
		case found:
			return e
		case ended:
			t.Fatalf("nlproxy ended before it logged %s: %v", what, d.Err())
		}
		select {
		case <-changed:
		case <-d.Done():
			ended = true
		case <-deadline.C:
			t.Fatalf("nlproxy did not log %s in %s", what, patience)
		}
	}
}

// Entries are all that d has logged.
func (d *Daemon) Entries() []Entry { return d.log.all() }

// Stop asks d to end, as a node does, and fails t unless it ends well.
func (d *Daemon) Stop(t testing.TB) {
	t.Helper()
	if err := d.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := d.ExitCode(t); code != 0 {
		t.Errorf("after SIGTERM nlproxy ended with code %d", code)
	}
}

// ExitCode waits until d has ended by itself, and returns its code, or -1 if a
// signal ended it.
func (d *Daemon) ExitCode(t testing.TB) int {
	t.Helper()
	select {
	case <-d.Done():
	case <-time.After(patience):
		t.Fatalf("nlproxy has not ended in %s", patience)
	}
	return d.Process.ExitCode()
}
