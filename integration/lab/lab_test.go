package lab_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

const port = 8080

// brief is for attempts that are expected to find no answer.
var brief = lab.DialOptions{Timeout: 300 * time.Millisecond}

func newNode(t *testing.T) *lab.Node {
	return labtest.Node(t, lab.Options{Namespace: labtest.Namespace(t)})
}

func TestEveryPlaceReachesEveryPlace(t *testing.T) {
	n := newNode(t)
	for _, network := range []string{"tcp", "udp", "sctp"} {
		t.Run(network, func(t *testing.T) {
			if network == "sctp" && !lab.HasSCTP() {
				t.Skip("SKIPPED: the kernel has no SCTP")
			}
			for _, server := range n.Places() {
				labtest.Serve(t, server, network, port)
				for _, client := range n.Places() {
					for _, a := range server.Addresses {
						checkAnswer(t, network, client, server, netip.AddrPortFrom(a, port))
					}
				}
			}
		})
	}
}

func checkAnswer(t *testing.T, network string, client, server *lab.Place, to netip.AddrPort) {
	t.Helper()
	got := client.Dial(network, to, lab.DialOptions{})
	if got.Kind != lab.Answered || got.By != server.Name || got.At != to {
		t.Errorf("%s from %s to %s at %s: %s", network, client, server, to, got)
		return
	}
	for _, a := range client.Addresses {
		if got.Source.Addr() == a {
			return
		}
	}
	if client == server || client.Name == "node" {
		return // a node has other addresses towards its pods
	}
	t.Errorf("%s from %s to %s: the server saw %s", network, client, server, got.Source)
}

func TestDialFromAGivenSource(t *testing.T) {
	n := newNode(t)
	labtest.Serve(t, n.Outside, "tcp", port)
	labtest.Serve(t, n.Outside, "udp", port)
	want := netip.MustParseAddrPort("192.168.8.1:4321")
	for _, network := range []string{"tcp", "udp", "udp", "tcp"} {
		got := n.Self.Dial(network, netip.AddrPortFrom(n.Outside.IPv4(), port),
			lab.DialOptions{Source: want.Addr(), LocalPort: want.Port()})
		if got.Source != want {
			t.Errorf("%s: %s, want source %s", network, got, want)
		}
	}
}

func TestDialWithoutAnAnswer(t *testing.T) {
	n := newNode(t)
	for _, c := range []struct {
		name string
		from *lab.Place
		to   string
		want lab.Kind
	}{
		{"closed port of a pod", n.Outside, "10.244.1.2:8080", lab.Refused},
		{"closed port of a pod, IPv6", n.Pods[0], "[fd00:244:2::2]:8080", lab.Refused},
		{"closed port of the node itself", n.Self, "192.168.7.1:8080", lab.Refused},
		{"an address that is nowhere", n.Self, "10.96.0.10:80", lab.Unreachable},
		{"an address that is nowhere, IPv6", n.Pods[0], "[fd00:96::10]:80", lab.Unreachable},
		{"a pod's address that no pod has", n.Pods[0], "10.244.2.77:80", lab.Unreachable},
	} {
		for _, network := range []string{"tcp", "udp"} {
			got := c.from.Dial(network, netip.MustParseAddrPort(c.to), lab.DialOptions{})
			if got.Kind != c.want {
				t.Errorf("%s, %s: %s, want %s", c.name, network, got, c.want)
			}
		}
	}
}

func TestDialTimesOut(t *testing.T) {
	n := newNode(t)
	// A listener that accepts but never answers.
	l, err := n.Pods[0].Namespace.Listen("tcp", netip.AddrPortFrom(n.Pods[0].IPv4(), port).String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	start := time.Now()
	got := n.Outside.Dial("tcp", netip.AddrPortFrom(n.Pods[0].IPv4(), port), brief)
	if took := time.Since(start); got.Kind != lab.TimedOut || took < brief.Timeout {
		t.Errorf("%s after %s, want a time-out after %s", got, took, brief.Timeout)
	}
}

func TestOutsideSendsServiceAddressesToTheNode(t *testing.T) {
	n := newNode(t)
	service := netip.MustParseAddrPort("203.0.113.7:8080")
	if err := n.Self.Namespace.AddLink("service", netip.PrefixFrom(service.Addr(), 32)); err != nil {
		t.Fatal(err)
	}
	labtest.Serve(t, &lab.Place{Name: "service", Namespace: n.Self.Namespace, Addresses: []netip.Addr{service.Addr()}}, "tcp", port)
	if got := n.Outside.Dial("tcp", service, lab.DialOptions{}); got.By != "service" {
		t.Errorf("from outside: %s", got)
	}
}

func TestSpreadCountsByServer(t *testing.T) {
	n := newNode(t)
	s := labtest.Serve(t, n.Remote[0], "tcp", port)
	to := netip.AddrPortFrom(n.Remote[0].IPv4(), port)
	const count = 3000
	start := time.Now()
	got := n.Pods[0].Spread("tcp", to, count, lab.DialOptions{})
	t.Logf("%d connections in %s", count, time.Since(start))
	if got.By["remote-1"] != count || got.Answered() != count || s.Asked() != count {
		t.Errorf("%s; the server counted %d; want %d", got, s.Asked(), count)
	}
	if got.Sources[n.Pods[0].IPv4()] != count {
		t.Errorf("sources %v", got.Sources)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got := n.Pods[0].Spread("tcp", to, 10, lab.DialOptions{}); len(got.Others) != 10 || got.Others[0].Kind != lab.Refused {
		t.Errorf("after the server's end: %s", got)
	}
}

func TestConnectionOutlivesQuestionsButNotItsServer(t *testing.T) {
	n := newNode(t)
	s := labtest.Serve(t, n.Pods[0], "tcp", port)
	conn, first := n.Outside.Connect("tcp", netip.AddrPortFrom(n.Pods[0].IPv6(), port), lab.DialOptions{})
	if conn == nil {
		t.Fatal(first)
	}
	defer conn.Close()
	if again := conn.Ask(time.Second); again != first || again.Source != conn.Local() {
		t.Errorf("then %s, first %s, from %s", again, first, conn.Local())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if gone := conn.Ask(time.Second); gone.Kind != lab.Broken {
		t.Errorf("after the server's end: %s", gone)
	}
}

// Of a thousand ports drawn at random, some would be the same.
func TestConnectionsHaveAPortOfTheirOwn(t *testing.T) {
	n := newNode(t)
	labtest.Serve(t, n.Pods[0], "udp", port)
	seen := map[netip.AddrPort]bool{}
	for range 1000 {
		conn, outcome := n.Pods[1].Connect("udp", netip.AddrPortFrom(n.Pods[0].IPv4(), port), lab.DialOptions{})
		if conn == nil {
			t.Fatal(outcome)
		}
		defer conn.Close()
		if seen[conn.Local()] {
			t.Errorf("two connections have %s", conn.Local())
		}
		seen[conn.Local()] = true
	}
}

func TestProbeRecordsFailures(t *testing.T) {
	n := newNode(t)
	s := labtest.Serve(t, n.Pods[1], "tcp", port)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	p := n.Pods[0].Probe("tcp", netip.AddrPortFrom(n.Pods[1].IPv4(), port), lab.ProbeOptions{})
	if err := p.Await(ctx, 20); err != nil {
		t.Error(err)
	}
	stopped := time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Await(ctx, 20); err != nil {
		t.Error(err)
	}
	report := p.Stop()
	if report.Answered < 20 || len(report.Failures) == 0 || report.Sent != report.Answered+len(report.Failures) {
		t.Fatalf("%d sent, %d answered, %d failed", report.Sent, report.Answered, len(report.Failures))
	}
	for _, f := range report.Failures {
		if f.End.Before(stopped) {
			t.Errorf("failure from before the server's end at %s: %s", stopped.Format("15:04:05.000"), f)
		}
		if k := f.Outcome.Kind; k != lab.Refused && k != lab.Broken {
			t.Errorf("failure %s", f)
		}
	}
}

func TestProbeFindsNoFailureWhereThereIsNone(t *testing.T) {
	n := newNode(t)
	labtest.Serve(t, n.Remote[0], "udp", port)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	p := n.Self.Probe("udp", netip.AddrPortFrom(n.Remote[0].IPv6(), port), lab.ProbeOptions{})
	start := time.Now()
	if err := p.Await(ctx, 200); err != nil {
		t.Error(err)
	}
	took := time.Since(start)
	if report := p.Stop(); len(report.Failures) > 0 || report.Answered != report.Sent {
		t.Errorf("%d sent, failures %v", report.Sent, report.Failures)
	}
	if took < 900*time.Millisecond {
		t.Errorf("200 probes in %s are more than 200 a second", took)
	}
}

func TestNewNodeRefusesANamespaceInUse(t *testing.T) {
	ns := labtest.Namespace(t)
	labtest.Node(t, lab.Options{Namespace: ns})
	if n, err := lab.NewNode(lab.Options{Namespace: ns}); err == nil {
		n.Close()
		t.Error("made a second node of one namespace")
	}
}

func TestNodeCanBeMadeAgainInTheSameNamespace(t *testing.T) {
	ns := labtest.Namespace(t)
	for range 3 {
		n, err := lab.NewNode(lab.Options{Namespace: ns, Pods: 1, RemotePods: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNewNodeOfTheCurrentNamespace(t *testing.T) {
	if !labtest.Alone(t) {
		return
	}
	start := time.Now()
	n := labtest.Node(t, lab.Options{Pods: 50})
	t.Logf("made in %s", time.Since(start))
	last := n.Pods[49]
	labtest.Serve(t, last, "tcp", port)
	want := fmt.Sprintf("10.244.1.%d:%d", 51, port)
	if got := n.Self.Dial("tcp", netip.MustParseAddrPort(want), lab.DialOptions{}); got.By != "pod-50" {
		t.Errorf("at %s: %s", want, got)
	}
}

func TestProcessRunsInItsNamespaceUntilItIsKilled(t *testing.T) {
	labtest.Tools(t, "sleep")
	ns := labtest.Namespace(t)
	p, err := ns.Start(exec.Command("sleep", "600"))
	if err != nil {
		t.Fatal(err)
	}
	var want string
	if err := ns.Do(func() (err error) {
		want, err = os.Readlink("/proc/thread-self/ns/net")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", p.PID())); got != want {
		t.Errorf("in %s, want %s (%v)", got, want, err)
	}
	select {
	case <-p.Done():
		t.Error("ended by itself")
	default:
	}
	p.Kill()
	if err := p.Err(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("ended with %v", err)
	}
}

func TestStartNamesTheProgramThatIsNotThere(t *testing.T) {
	_, err := labtest.Namespace(t).Start(exec.Command("/no/such/program"))
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("got %v", err)
	}
}

func TestOptionsNameTheBadField(t *testing.T) {
	_, err := lab.NewNode(lab.Options{RemotePods: 254})
	if want := "lab: option RemotePods is 254, not from 0 to 253"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
