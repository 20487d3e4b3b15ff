package lifecycle

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
)

// settings are the configuration that start starts a daemon with.
func settings() string {
	return strings.ReplaceAll(daemon.Configuration(10*time.Millisecond), "{kubeconfig}", "")
}

func TestAChangedConfigurationIsTakenUpWithoutLosingAConnection(t *testing.T) {
	r, d, web := running(t)
	flows := labtest.Open(t, r.Pods[0], "tcp", web.ClusterIP(), 10)
	pid := d.PID()

	d.Configure(t, strings.Replace(settings(), "iptables: {", "iptables: {masqueradeBit: 17, ", 1))
	d.Synchronised(t)
	if got := rulesOf(t, r, "KUBE-MARK-MASQ"); !strings.Contains(got, "0x20000") {
		t.Errorf("the mark is not of bit 17:\n%s", got)
	}
	flows.Ask(t)
	if body := labtest.Get(t, r.Self.Namespace, "http://127.0.0.1:10249/configz").Body; !strings.Contains(body, `"masqueradeBit":17`) {
		t.Errorf("/configz tells of another configuration: %s", body)
	}

	for _, wrong := range []struct{ text, problem string }{
		{strings.Replace(settings(), "iptables: {", "iptables: {masqueradeBit: 32, ", 1), "iptables.masqueradeBit"},
		{"kind: [", "yaml"},
		{strings.Replace(settings(), "hostnameOverride: node1", "hostnameOverride: node_1", 1), "node_1"},
	} {
		before := daemon.Generation(t, r.Self.Namespace)
		d.Configure(t, wrong.text)
		d.Await(t, "that the file cannot be used", func(e daemon.Entry) bool {
			return e.Level == "error" && strings.Contains(e.Line, wrong.problem)
		})
		if after := daemon.Generation(t, r.Self.Namespace); after != before {
			t.Errorf("%s: the rules have changed", wrong.problem)
		}
	}

	d.Configure(t, settings())
	d.Synchronised(t)
	if got := rulesOf(t, r, "KUBE-MARK-MASQ"); !strings.Contains(got, "0x4000") {
		t.Errorf("the mark is not of bit 14 again:\n%s", got)
	}
	flows.Ask(t)
	if d.PID() != pid {
		t.Errorf("process %d is now %d", pid, d.PID())
	}
}

func TestHangupsEndNothingEvenBetweenTwoConfigurations(t *testing.T) {
	_, d, _ := running(t)
	for bit := range 20 {
		d.Configure(t, strings.Replace(settings(), "iptables: {", fmt.Sprintf("iptables: {masqueradeBit: %d, ", bit), 1))
		for started := false; !started; {
			if err := d.Signal(unix.SIGHUP); err != nil {
				t.Fatal(err)
			}
			d.Await(t, "that it goes on", func(e daemon.Entry) bool {
				started = started || e.Message == "starts"
				return started || strings.HasPrefix(e.Message, "the configuration has changed; taking it up as soon as")
			})
		}
		d.Synchronised(t)
	}
	d.Stop(t)
}

func TestAConfigurationIsTakenUpWithoutAServiceManagerToTell(t *testing.T) {
	r := newRig(t)
	d := daemon.Start(t, daemon.Options{
		Namespace:   r.Self.Namespace,
		Config:      settings(),
		Manifests:   r.manifests,
		Environment: []string{"NOTIFY_SOCKET=" + filepath.Join(t.TempDir(), "nobody"), "WATCHDOG_USEC=0"},
	})
	d.Synchronised(t)
	d.Configure(t, strings.Replace(settings(), "iptables: {", "iptables: {masqueradeBit: 17, ", 1))
	d.Synchronised(t)
	d.Stop(t)
}

func TestTheEndOfWhatReadsTheLogEndsNothing(t *testing.T) {
	r := newRig(t)
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, settings())
	read, log, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := read.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(daemon.Binary(t), "run", "--config="+path, "--manifests="+r.manifests)
	cmd.Stdout, cmd.Stderr = log, log
	notified := filepath.Join(t.TempDir(), "notify")
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+notified)
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notified, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	p, err := r.Self.Namespace.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	if err := manager.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := manager.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.ExitCode(); code != 0 {
		t.Errorf("it ended with %v", p.Err())
	}
}

func TestAPipeInPlaceOfTheConfigurationHoldsNothingUp(t *testing.T) {
	r := newRig(t)
	d := r.start(t)
	d.Synchronised(t)
	d.ConfigureBy(t, func(path string) error { return unix.Mkfifo(path, 0o600) })
	d.Await(t, "that the file cannot be used", func(e daemon.Entry) bool { return e.Level == "error" })
	d.Stop(t)
}

// The next proxy waits for its node beside the one that runs, which goes on
// following what changes.
func TestAConfigurationIsTakenUpOnceAllIsKnownThatItNeeds(t *testing.T) {
	r, d, _ := running(t)
	d.Configure(t, strings.Replace(settings(), "hostnameOverride: node1", "hostnameOverride: node2", 1))
	d.Await(t, "that it waits", func(e daemon.Entry) bool {
		return strings.HasPrefix(e.Message, "the configuration has changed; taking it up as soon as")
	})
	r.put(t, "other.yaml", objects.Documents(t, other(r.Pods[1])))
	r.becomes(t, other(r.Pods[1]).ClusterIP(), "pod-2")

	node := objects.Node()
	node.Name = "node2"
	r.put(t, "node2.yaml", objects.YAML(t, node))
	e := d.Await(t, "that it starts", func(e daemon.Entry) bool { return e.Message == "starts" })
	if !strings.Contains(e.Line, `"node":"node2"`) {
		t.Errorf("it starts as another node: %s", e.Line)
	}
	r.put(t, "other.yaml", objects.Documents(t, other(r.Pods[2])))
	r.becomes(t, other(r.Pods[2]).ClusterIP(), "pod-3")
}

func TestAnEndIsNoFaultOfTheConfigurationThatWaits(t *testing.T) {
	_, d, _ := running(t)
	d.Configure(t, strings.Replace(settings(), "hostnameOverride: node1", "hostnameOverride: node2", 1))
	d.Await(t, "that it waits", func(e daemon.Entry) bool {
		return strings.HasPrefix(e.Message, "the configuration has changed; taking it up as soon as")
	})
	d.Stop(t)
	for _, e := range d.Entries() {
		if e.Level == "error" {
			t.Errorf("it complains: %s", e.Line)
		}
	}
}

func TestAFileThatIsMendedIsSpokenOf(t *testing.T) {
	r, d, _ := running(t)
	refused := func(want string) {
		t.Helper()
		if body := labtest.Get(t, r.Self.Namespace, "http://127.0.0.1:10249/metrics").Body; !strings.Contains(body, "nlproxy_configuration_refused "+want+"\n") {
			t.Errorf("nlproxy_configuration_refused is not %s", want)
		}
	}
	refused("0")
	d.Configure(t, "kind: [")
	d.Await(t, "that the file cannot be used", func(e daemon.Entry) bool { return e.Level == "error" })
	refused("1")
	d.Configure(t, settings()+"masqueradeAll: true\n")
	d.Await(t, "that it can be used", func(e daemon.Entry) bool {
		return strings.HasPrefix(e.Message, "the configuration can be used again")
	})
	d.Await(t, "which field there is none of", func(e daemon.Entry) bool {
		return e.Level == "warn" && strings.Contains(e.Message, "config.yaml:9: masqueradeAll: ")
	})
	refused("0")
}

func TestTheVerbosityChangesWhileTheProxyRuns(t *testing.T) {
	_, d, _ := running(t)
	d.Configure(t, settings()+"logging: {verbosity: 3}\n")
	e := d.Await(t, "that the verbosity has changed, or that it starts anew", func(e daemon.Entry) bool {
		return e.Message == "the verbosity has changed" || e.Message == "starts"
	})
	if e.Message == "starts" {
		t.Error("it starts anew for the verbosity alone")
	}
}

// rulesOf returns the rules in the kernel that name a chain, as the command
// rules prints them.
func rulesOf(t *testing.T, r *rig, chain string) string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(labtest.Run(t, r.Self.Namespace, "", daemon.Binary(t), "rules")) {
		if strings.Contains(line, "-A "+chain+" ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

func TestAnAddressThatIsTakenEndsTheProcessIfItIsToFailHard(t *testing.T) {
	r := newRig(t)
	labtest.Serve(t, r.Self, "tcp", 10256)
	d := daemon.Start(t, daemon.Options{
		Namespace: r.Self.Namespace,
		Config:    settings() + "bindAddressHardFail: true\n",
		Manifests: r.manifests,
	})
	if code := d.ExitCode(t); code != 1 {
		t.Errorf("it ended with exit code %d, want 1", code)
	}
	d.Await(t, "why it ended", func(e daemon.Entry) bool {
		return strings.Contains(e.Line, "healthz") && strings.Contains(e.Line, "address already in use")
	})
}
