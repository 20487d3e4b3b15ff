package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	ct "github.com/ti-mo/conntrack"
	corev1 "k8s.io/api/core/v1"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/integration/golden"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
)

// made is a flow for the kernel, with an hour left. Without an endpoint it is
// not translated.
type made struct {
	protocol                   model.Protocol
	client, frontend, endpoint string
	status                     ct.Status
	tcpState                   uint8
	zone                       uint16
}

func (m made) flow() ct.Flow {
	from, to := netip.MustParseAddrPort(m.client), netip.MustParseAddrPort(m.frontend)
	f := ct.NewFlow(uint8(m.protocol), m.status, from.Addr(), to.Addr(), from.Port(), to.Port(), 3600, 0)
	if m.endpoint != "" {
		endpoint := netip.MustParseAddrPort(m.endpoint)
		f.TupleReply.IP.SourceAddress, f.TupleReply.Proto.SourcePort = endpoint.Addr(), endpoint.Port()
	}
	if m.tcpState != 0 {
		f.ProtoInfo.TCP = &ct.ProtoInfoTCP{State: m.tcpState}
	}
	f.Zone = m.zone
	return f
}

const (
	established = 3 // TCP_CONNTRACK_ESTABLISHED
	// A flow that is made is confirmed, and cannot be told not to be.
	answered = ct.StatusConfirmed | ct.StatusSeenReply
	assured  = answered | ct.StatusAssured
)

// makeAll makes flows in ns.
func makeAll(t *testing.T, ns *lab.Namespace, flows []made) {
	t.Helper()
	err := ns.Do(func() error {
		conn, err := ct.Dial(nil)
		if err != nil {
			return err
		}
		defer conn.Close()
		for _, f := range flows {
			if err := conn.Create(f.flow()); err != nil {
				t.Fatalf("%+v: %v", f, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// programmed is a namespace with the rules of a case and these flows.
func programmed(t *testing.T, name string, flows ...made) *lab.Namespace {
	t.Helper()
	ns := golden.Namespace(t)
	program(t, ns, golden.Named(t, name))
	makeAll(t, ns, flows)
	return ns
}

// hourLeft is how little less than an hour is printed.
var hourLeft = regexp.MustCompile(`59m[345]\ds`)

func withHour(text string) string { return hourLeft.ReplaceAllString(text, "1h0m0s") }

var dualStack = []made{
	{model.TCP, "10.244.9.9:40002", "10.96.3.10:80", "10.244.1.5:8080", assured, established, 0},
	{model.TCP, "10.244.9.9:40001", "10.96.3.10:80", "10.244.2.6:8080", 0, 1, 0},
	{model.TCP, "198.51.100.7:40000", "192.168.8.1:30010", "10.244.1.5:8080", assured, established, 0},
	{model.TCP, "198.51.100.7:40001", "203.0.113.10:80", "", answered, 7, 5},
	{model.TCP, "[fd00:9::9]:40000", "[fd00:7::1]:30010", "[fd00:244:1::5]:8080", assured, established, 0},
	{model.TCP, "[fd00:9::9]:40000", "[fd00:96::3:11]:80", "[fd00:244:1::7]:8080", assured, established, 0},
	// Not through a service: an endpoint itself, another port, another protocol,
	// the port of a node port elsewhere.
	{model.TCP, "10.244.9.9:40000", "10.244.1.5:8080", "", assured, established, 0},
	{model.TCP, "10.244.9.9:40000", "10.96.3.10:81", "", assured, established, 0},
	{model.UDP, "10.244.9.9:40000", "10.96.3.10:80", "", 0, 0, 0},
	{model.TCP, "10.244.9.9:40000", "8.8.8.8:30010", "", assured, established, 0},
}

func TestFlowsPrintsConnectionsThroughServices(t *testing.T) {
	ns := programmed(t, "16-dual-stack", dualStack...)
	const want = `PROTO  SERVICE          CLIENT              FRONTEND            ENDPOINT              STATE        LEFT    ZONE
tcp    default/ds:http  10.244.9.9:40001    10.96.3.10:80       10.244.2.6:8080       SYN_SENT     1h0m0s
tcp    default/ds:http  10.244.9.9:40002    10.96.3.10:80       10.244.1.5:8080       ESTABLISHED  1h0m0s
tcp    default/ds:http  198.51.100.7:40000  192.168.8.1:30010   10.244.1.5:8080       ESTABLISHED  1h0m0s
tcp    default/ds:http  198.51.100.7:40001  203.0.113.10:80     -                     TIME_WAIT    1h0m0s  5
tcp    default/ds:http  [fd00:9::9]:40000   [fd00:7::1]:30010   [fd00:244:1::5]:8080  ESTABLISHED  1h0m0s
tcp    default/v6:http  [fd00:9::9]:40000   [fd00:96::3:11]:80  [fd00:244:1::7]:8080  ESTABLISHED  1h0m0s
`
	out, complaints := execute(t, ns, "flows")
	if diff := cmp.Diff(want, withHour(out)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if complaints != "" {
		t.Errorf("complaints: %s", complaints)
	}
}

func TestFlowsPrintsEachProtocol(t *testing.T) {
	ns := programmed(t, "02-protocols-and-ports",
		made{model.UDP, "10.244.9.9:40000", "10.96.3.11:53", "10.244.1.5:53", 0, 0, 0},
		made{model.UDP, "10.244.9.9:40001", "10.96.3.11:53", "10.244.1.5:53", answered, 0, 0},
		made{model.UDP, "10.244.9.9:40002", "10.96.3.11:53", "10.244.1.5:53", assured, 0, 0},
		made{model.TCP, "10.244.9.9:40000", "10.96.3.12:443", "10.244.1.5:8443", assured, established, 0})
	const want = `PROTO  SERVICE              CLIENT            FRONTEND        ENDPOINT         STATE        LEFT    ZONE
tcp    default/unnamed      10.244.9.9:40000  10.96.3.12:443  10.244.1.5:8443  ESTABLISHED  1h0m0s
udp    kube-system/dns:dns  10.244.9.9:40000  10.96.3.11:53   10.244.1.5:53    unanswered   1h0m0s
udp    kube-system/dns:dns  10.244.9.9:40001  10.96.3.11:53   10.244.1.5:53    answered     1h0m0s
udp    kube-system/dns:dns  10.244.9.9:40002  10.96.3.11:53   10.244.1.5:53    assured      1h0m0s
`
	if out, _ := execute(t, ns, "flows"); withHour(out) != want {
		t.Errorf("-want +got:\n%s", cmp.Diff(want, withHour(out)))
	}
}

func TestFlowsPrintsOnlyWhatIsAskedFor(t *testing.T) {
	ns := programmed(t, "16-dual-stack", dualStack...)
	for _, tc := range []struct {
		args []string
		want int
	}{
		{nil, 6},
		{[]string{"--service", "default/ds"}, 5},
		{[]string{"--service", "default/v6"}, 1},
		{[]string{"--family", "ipv4"}, 4},
		{[]string{"--family", "ipv6"}, 2},
		{[]string{"--family", "ipv6", "--service", "default/ds"}, 1},
		{[]string{"--to", "10.96.3.10"}, 2},
		{[]string{"--to", "10.96.3.10:80"}, 2},
		{[]string{"--to", "10.96.3.10:81"}, 0},
		{[]string{"--to", "10.244.1.5:8080"}, 2},
		{[]string{"--to", "fd00:7::1"}, 1},
		{[]string{"--to", "[fd00:244:1::7]:8080"}, 1},
	} {
		out, complaints := execute(t, ns, append([]string{"flows"}, tc.args...)...)
		if got := strings.Count(out, "\n") - 1; got != tc.want || complaints != "" {
			t.Errorf("%v: %d flows, want %d\n%s%s", tc.args, got, tc.want, out, complaints)
		}
	}
}

func TestFlowsKnowsWhereNoNodePortIs(t *testing.T) {
	ns := programmed(t, "16-dual-stack",
		made{model.TCP, "[::1]:40000", "[::1]:30010", "", assured, established, 0},
		made{model.TCP, "127.0.0.1:40000", "127.0.0.1:30010", "10.244.1.5:8080", assured, established, 0})
	out, _ := execute(t, ns, "flows")
	if strings.Contains(out, "::1") || !strings.Contains(out, "127.0.0.1:30010") {
		t.Errorf("a node port on ::1, or none on 127.0.0.1:\n%s", out)
	}
}

func TestFlowsSaysThatAServiceHasNoRules(t *testing.T) {
	ns := programmed(t, "16-dual-stack")
	if _, complaints := execute(t, ns, "flows", "--service", "default/typo"); !strings.Contains(complaints, "--service default/typo: no rule") {
		t.Errorf("complaints: %q", complaints)
	}
	if out, _ := execute(t, labtest.Namespace(t), "flows"); strings.Count(out, "\n") != 1 {
		t.Errorf("without any rules: %q", out)
	}
}

func TestFlowsNamesTheFlagThatCannotBeUsed(t *testing.T) {
	for flag, values := range map[string][]string{
		"--service": {"web", "/web", "default/", "a/b/c", "default/web:http"},
		"--to":      {"web", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:70000", "10.0.0.0/8", "fe80::1%eth0", ":80"},
		"--family":  {"4", "IPv4"},
	} {
		for _, value := range values {
			cmd := root()
			cmd.SetArgs([]string{"flows", flag, value})
			if err := cmd.Execute(); err == nil || !strings.HasPrefix(err.Error(), flag+` "`+value+`": must be `) {
				t.Errorf("%s %s: %v", flag, value, err)
			}
		}
	}
}

// TestFlowsSeesRealTraffic sends a datagram through a service.
func TestFlowsSeesRealTraffic(t *testing.T) {
	ns := labtest.Namespace(t)
	node := labtest.Node(t, lab.Options{Namespace: ns})
	client, server := node.Pods[0], node.Pods[1]
	labtest.Serve(t, server, "udp", objects.TargetPort)
	service := objects.Service{Name: "echo", Number: 1, Protocols: []corev1.Protocol{corev1.ProtocolUDP},
		Endpoints: []objects.Endpoint{{Address: server.IPv4(), Node: objects.Here}}}
	c := golden.Case{
		Config:  []byte("apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"),
		Objects: []byte(objects.YAML(t, objects.Node()) + objects.Documents(t, service)),
	}
	program(t, ns, c)
	labtest.Open(t, client, "udp", service.ClusterIP(), 1).Ask(t)
	out, _ := execute(t, ns, "flows", "--service", "default/echo")
	want := service.ClusterIP().String() + "  " + netip.AddrPortFrom(server.IPv4(), objects.TargetPort).String()
	if strings.Count(out, "\n") != 2 || !strings.Contains(out, want) || !strings.Contains(out, client.IPv4().String()+":") {
		t.Errorf("no flow from %s with %q:\n%s", client.IPv4(), want, out)
	}
}

// watching runs flows --watch in ns until t ends, and returns its lines.
func watching(t *testing.T, ns *lab.Namespace, args ...string) *bufio.Scanner {
	t.Helper()
	in, out := io.Pipe()
	var complaints bytes.Buffer
	ctx, stop := context.WithCancel(t.Context())
	cmd := root()
	cmd.SetArgs(append([]string{"flows", "--watch"}, args...))
	cmd.SetOut(out)
	cmd.SetErr(&complaints)
	ended := make(chan error, 1)
	go func() {
		err := ns.Do(func() error { return cmd.ExecuteContext(ctx) })
		out.CloseWithError(err)
		ended <- err
	}()
	t.Cleanup(func() {
		stop()
		in.Close()
		if err := <-ended; err != nil || complaints.Len() != 0 {
			t.Errorf("ended with %v, complaints: %s", err, &complaints)
		}
	})
	lines := bufio.NewScanner(in)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "TIME") {
		t.Fatalf("%q, %v", lines.Text(), lines.Err())
	}
	return lines
}

func TestFlowsWatchSeesFlowsBeginChangeAndEnd(t *testing.T) {
	ns := programmed(t, "16-dual-stack")
	lines := watching(t, ns, "--family", "ipv4")
	f := dualStack[1]
	makeAll(t, ns, []made{dualStack[4], dualStack[6], f}) // the first two are not asked for, and no service's
	err := ns.Do(func() error {
		conn, err := ct.Dial(nil)
		if err != nil {
			return err
		}
		defer conn.Close()
		changed := f.flow()
		changed.ProtoInfo.TCP.State = established
		changed.Status |= assured
		if err := conn.Update(changed); err != nil {
			return err
		}
		return conn.Delete(f.flow())
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		` new +tcp +default/ds:http +10.244.9.9:40001 +10.96.3.10:80 +10.244.2.6:8080 +SYN_SENT +(59m\d+s|1h0m0s)$`,
		` update +tcp +default/ds:http +10.244.9.9:40001 +10.96.3.10:80 +10.244.2.6:8080 +ESTABLISHED `,
		` end +tcp +default/ds:http +10.244.9.9:40001 +10.96.3.10:80 +10.244.2.6:8080 +ESTABLISHED `,
	} {
		if !lines.Scan() {
			t.Fatalf("no line like %q: %v", want, lines.Err())
		}
		if !regexp.MustCompile(`^\d\d:\d\d:\d\d\.\d{3} +` + strings.TrimSpace(want)).MatchString(lines.Text()) {
			t.Errorf("line %q, want %q", lines.Text(), want)
		}
	}
}

func TestFlowsInAFlowTableHaveNoTimeLeft(t *testing.T) {
	var f serviceFlow
	f.Status = ct.StatusOffload | ct.StatusAssured
	f.TCPState = established
	if f.state() != "offloaded" || f.left() != "-" {
		t.Errorf("state %q, left %q", f.state(), f.left())
	}
	f = serviceFlow{}
	f.TCPState = 200
	if f.state() != "unanswered" {
		t.Errorf("an unknown state is %q", f.state())
	}
}
