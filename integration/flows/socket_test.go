package flows

import (
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/integration/lab"
)

// soon is how long after the rules every flow has to follow them.
const soon = time.Second

// client is a socket that stays open.
type client struct {
	name string
	conn net.Conn
}

// clients are one for each kind of frontend and family.
func clients(t *testing.T, n *lab.Node) (all []client) {
	t.Helper()
	for _, c := range []struct {
		name string
		from *lab.Place
		to   string
	}{
		{"cluster IP", n.Pods[2], "10.96.0.1:80"},
		{"cluster IP, IPv6", n.Pods[2], "[fd00:96::1]:80"},
		{"cluster IP, from the node", n.Self, "10.96.0.1:80"},
		{"node port", n.Outside, "192.168.7.1:30001"},
		{"node port, IPv6", n.Outside, "[fd00:7::1]:30001"},
		{"node port, from a pod", n.Pods[2], "192.168.8.1:30001"},
		{"load-balancer IP", n.Outside, "203.0.113.1:80"},
		{"load-balancer IP, IPv6", n.Outside, "[2001:db8:1::1]:80"},
		{"external IP", n.Outside, "198.51.100.1:80"},
		{"external IP, IPv6", n.Outside, "[2001:db8:e::1]:80"},
	} {
		conn, err := c.from.Namespace.DialContext(t.Context(), "udp", c.to)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		all = append(all, client{c.name, conn})
	}
	return all
}

// ask sends a question and returns who answers, empty for nobody.
func (c client) ask(patience time.Duration) string {
	reply := make([]byte, 200)
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err.Error()
	}
	_, _ = c.conn.Write([]byte("\n")) // may bring the ICMP error of the last question
	n, err := c.conn.Read(reply)
	if err != nil {
		return ""
	}
	by, _, _ := strings.Cut(string(reply[:n]), " ")
	return by
}

// becomes asks until who is to answer does, and says how long that took.
func (c client) becomes(t *testing.T, step, want string) (took time.Duration) {
	start := time.Now()
	for {
		got := c.ask(50 * time.Millisecond)
		took = time.Since(start)
		if got == want {
			return took
		}
		if took > soon {
			t.Errorf("%s, %s: answered by %q after %s, want %q", step, c.name, got, took, want)
			return took
		}
	}
}

func TestSocketThatStaysOpenFollowsItsService(t *testing.T) {
	n := node(t)
	p := newProxy(t, n.Self.Namespace)
	all := clients(t, n)
	gone := map[model.Name]*model.Service{service().Name: nil}
	with := func(places ...*lab.Place) map[model.Name]*model.Service {
		svc := service(places...)
		return map[model.Name]*model.Service{svc.Name: svc}
	}
	for _, step := range []struct {
		name    string
		changes map[model.Name]*model.Service
		want    string
	}{
		{"no service yet", nil, ""},
		{"no endpoints yet", with(), ""},
		{"first endpoint", with(n.Pods[0]), "pod-1"},
		{"replaced endpoint", with(n.Remote[0]), "remote-1"},
		{"one more, and the old one gone", with(n.Pods[1]), "pod-2"},
		{"no endpoints", with(), ""},
		{"endpoint again", with(n.Pods[0]), "pod-1"},
		{"service gone", gone, ""},
		{"service again", with(n.Remote[1]), "remote-2"},
		{"service gone again", gone, ""},
		{"service again with the same endpoint", with(n.Remote[1]), "remote-2"},
	} {
		p.set(t, step.changes)
		var asking sync.WaitGroup
		for _, c := range all {
			asking.Go(func() { c.becomes(t, step.name, step.want) })
		}
		asking.Wait()
	}
}

// TestOneWaySenderLeavesItsServer sends without ever reading: what arrives at
// the server that is gone has to end.
func TestOneWaySenderLeavesItsServer(t *testing.T) {
	n := node(t)
	p := newProxy(t, n.Self.Namespace)
	listener, err := n.Pods[2].Namespace.ListenPacket("udp", netip.AddrPortFrom(n.Pods[2].IPv4(), target).String())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p.put(t, service(n.Pods[2]))
	sender, err := n.Outside.Namespace.DialContext(t.Context(), "udp", "192.168.7.1:30001")
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	arrives := func(patience time.Duration) bool {
		_, _ = sender.Write([]byte("metric")) // may bring the ICMP error of the last one
		if err := listener.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		_, _, err := listener.ReadFrom(make([]byte, 100))
		return err == nil
	}
	if !arrives(soon) {
		t.Fatal("nothing arrives at the endpoint")
	}
	p.put(t, service())
	for end := time.Now().Add(soon); arrives(50 * time.Millisecond); {
		if time.Now().After(end) {
			t.Fatalf("still arrives %s after the endpoint is gone", soon)
		}
	}
	if arrives(200 * time.Millisecond) {
		t.Error("arrives again")
	}
}
