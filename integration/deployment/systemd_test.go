package deployment

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nlproxy/nlproxy/integration/cluster"
	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
)

// TestSystemdKnowsAllThatTheUnitSays has systemd look for the binary where it is
// here.
func TestSystemdKnowsAllThatTheUnitSays(t *testing.T) {
	text := manifest(t, "systemd")
	const installed = "ExecStart=/usr/local/bin/nlproxy "
	if strings.Count(text, installed) != 1 {
		t.Fatalf("not one %q:\n%s", installed, text)
	}
	unit := filepath.Join(t.TempDir(), "nlproxy.service")
	text = strings.Replace(text, installed, "ExecStart="+daemon.Binary(t)+" ", 1)
	if err := os.WriteFile(unit, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	// It warns of what it does not know and yet succeeds, so nothing may be said.
	if out := labtest.Run(t, labtest.Current(t), "", "sh", "-c", "systemd-analyze verify --man=no "+unit+" 2>&1"); out != "" {
		t.Errorf("systemd-analyze verify says:\n%s", out)
	}
}

// TestNothingIsOrderedAfterTheUnit: it may start only when the kubelet has
// started an API server.
func TestNothingIsOrderedAfterTheUnit(t *testing.T) {
	if text := manifest(t, "systemd"); strings.Contains(text, "\nBefore=") {
		t.Errorf("other units wait for this one:\n%s", text)
	}
}

// setting is what a unit has after the equals sign.
func setting(t *testing.T, unit, name string) string {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(unit))
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+"="); ok {
			return value
		}
	}
	t.Fatalf("the unit has no %s:\n%s", name, unit)
	return ""
}

// TestServesWithTheCapabilityOfTheUnit stands in for systemd: it gives that
// capability and no other, leaves /proc/sys writable, and listens.
func TestServesWithTheCapabilityOfTheUnit(t *testing.T) {
	unit := manifest(t, "systemd")
	for _, name := range []string{"CapabilityBoundingSet", "AmbientCapabilities"} {
		if got := setting(t, unit, name); got != "CAP_NET_ADMIN" {
			t.Errorf("%s is %s", name, got)
		}
	}
	r := newRig(t)
	r.Create(t, []byte(objects.Documents(t, r.web())))
	manager := listen(t)
	cmd := exec.Command(daemon.Binary(t), "--config="+r.configuration(t))
	cmd.Env = []string{"NOTIFY_SOCKET=" + manager.LocalAddr().String(), "WATCHDOG_USEC=1000000"}
	ran := startConfined(t, r.Self.Namespace, cmd)
	ran.checkRights(t)
	await(t, manager, "READY=1")
	labtest.Answers(t, r.Pods[0], "tcp", r.web().ClusterIP(), "pod-2", "remote-1") // at once
	await(t, manager, "WATCHDOG=1")
	r.isSet(t, "net/netfilter/nf_conntrack_tcp_timeout_established", "1001")
	r.isSet(t, "net/ipv4/conf/all/route_localnet", "1")
	ran.stop(t)
	await(t, manager, "STOPPING=1")
}

// configuration is the path of a file that asks for what takes a right to write.
func (r *rig) configuration(t *testing.T) string {
	t.Helper()
	text := strings.NewReplacer("tcpEstablishedTimeout: 0s", "tcpEstablishedTimeout: 1001s",
		"{kubeconfig}", r.Kubeconfig(t, cluster.KubeProxy)).Replace(daemon.Configuration(10 * time.Millisecond))
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// isSet fails t unless a sysctl of the node has a value.
func (r *rig) isSet(t *testing.T, name, want string) {
	t.Helper()
	var got []byte
	err := r.Self.Namespace.Do(func() (err error) {
		got, err = os.ReadFile("/proc/sys/" + name)
		return err
	})
	if err != nil || strings.TrimSpace(string(got)) != want {
		t.Errorf("%s is %q, %v, want %s", name, got, err, want)
	}
}

// listen is a service manager's end of its protocol.
func listen(t *testing.T) *net.UnixConn {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// await waits for a message that begins so.
func await(t *testing.T, conn *net.UnixConn, begin string) {
	t.Helper()
	buffer := make([]byte, 4096)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			t.Fatalf("%s was not said: %v", begin, err)
		}
		if strings.HasPrefix(string(buffer[:n]), begin) {
			return
		}
	}
}
