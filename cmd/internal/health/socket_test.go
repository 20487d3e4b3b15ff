package health

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// traced is a listener that tells when it is closed.
type traced struct {
	net.Listener
	once   sync.Once
	closed chan<- struct{}
}

func (l *traced) Close() (err error) {
	l.once.Do(func() {
		err = l.Listener.Close()
		l.closed <- struct{}{}
	})
	return err
}

// live are Ports that run on sockets of this network, until stop is called or
// the test ends. They tell of each that they open and close.
type live struct {
	*Ports
	opened, closed chan struct{}
	stop           func()
}

func newLive(t *testing.T, o PortsOptions) *live {
	t.Helper()
	l := &live{newPorts(t, o), make(chan struct{}, 100), make(chan struct{}, 100), nil}
	l.listen = func(ctx context.Context, at place) (net.Listener, error) {
		listener, err := listen(ctx, at)
		if err != nil {
			return nil, err
		}
		l.opened <- struct{}{}
		return &traced{Listener: listener, closed: l.closed}, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { l.Run(ctx); close(ended) }()
	l.stop = func() { cancel(); <-ended }
	t.Cleanup(func() {
		l.stop()
		if left := listening(t); len(left) > 0 {
			t.Errorf("left listening: %q", left)
		}
	})
	return l
}

// await returns when as many sockets were opened or closed.
func await(t *testing.T, sockets <-chan struct{}, n int) {
	t.Helper()
	for range n {
		select {
		case <-sockets:
		case <-time.After(30 * time.Second):
			t.Fatal("nothing happens")
		}
	}
}

// listening returns the local address of each TCP socket of this network that
// listens, as the kernel writes it.
func listening(t *testing.T) (at []string) {
	t.Helper()
	const listen = "0A" // TCP_LISTEN, include/net/tcp_states.h
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) > 3 && fields[3] == listen {
				at = append(at, fields[1])
			}
		}
	}
	return at
}

var client = http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// asks returns the status and the number of endpoints, or that nobody listens.
func asks(t *testing.T, addr string) string {
	t.Helper()
	answer, err := client.Get("http://" + netip.AddrPortFrom(netip.MustParseAddr(addr), 30999).String())
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "refused"
	}
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return fmt.Sprint(answer.StatusCode, " ", answer.Header.Get("X-Load-Balancing-Endpoint-Weight"))
}

func expectAll(t *testing.T, want map[string]string) {
	t.Helper()
	for addr, want := range want {
		if got := asks(t, addr); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}

// give adds an address to an interface until the end of the test.
func give(t *testing.T, link, addr string) {
	t.Helper()
	on, err := netlink.LinkByName(link)
	if err != nil {
		t.Fatal(err)
	}
	a, err := netlink.ParseAddr(addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.AddrAdd(on, a); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { netlink.AddrDel(on, a) })
}

func TestOneSocketAnswersForBothFamilies(t *testing.T) {
	p := newLive(t, PortsOptions{})
	update(p.Ports, part(model.IPv4, all, service(web, 30999, 2)), part(model.IPv6, all, service(web, 30999, 1)))
	await(t, p.opened, 1)
	expectAll(t, map[string]string{"127.0.0.1": "200 2", "::1": "200 1"})
	if sockets := listening(t); len(sockets) != 1 {
		t.Errorf("listens with %q, want one socket", sockets)
	}
}

func TestAServiceOfOneFamilyIsAskedForInThatAlone(t *testing.T) {
	p := newLive(t, PortsOptions{})
	update(p.Ports, part(model.IPv4, all, service(web, 30999, 2)), part(model.IPv6, all))
	await(t, p.opened, 1)
	expectAll(t, map[string]string{"127.0.0.1": "200 2", "::1": "refused"})
}

func TestOnlyNodePortAddressesListen(t *testing.T) {
	for _, a := range []string{"192.0.2.1/32", "192.0.2.2/32", "2001:db8::1/128", "2001:db8::2/128"} {
		give(t, "lo", a)
	}
	p := newLive(t, PortsOptions{})
	update(p.Ports,
		part(model.IPv4, only("192.0.2.1"), service(web, 30999, 2)),
		part(model.IPv6, only("2001:db8::1"), service(web, 30999, 2)))
	await(t, p.opened, 2)
	expectAll(t, map[string]string{
		"192.0.2.1": "200 2", "192.0.2.2": "refused", "127.0.0.1": "refused",
		"2001:db8::1": "200 2", "2001:db8::2": "refused", "::1": "refused",
	})
	update(p.Ports, part(model.IPv4, only("192.0.2.2")), part(model.IPv6, only("2001:db8::1", "2001:db8::2")))
	await(t, p.opened, 2)
	await(t, p.closed, 1)
	expectAll(t, map[string]string{
		"192.0.2.1": "refused", "192.0.2.2": "200 2", "127.0.0.1": "refused",
		"2001:db8::1": "200 2", "2001:db8::2": "200 2", "::1": "refused",
	})
}

// An address is tentative until the network had time to object to it.
func TestAnAddressListensAsSoonAsItIsThere(t *testing.T) {
	here := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "here"}, PeerName: "there"}
	if err := netlink.LinkAdd(here); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { netlink.LinkDel(here) })
	for _, name := range []string{"here", "there"} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := netlink.LinkSetUp(link); err != nil {
			t.Fatal(err)
		}
	}
	p := newLive(t, PortsOptions{Failed: func(_ model.Name, _ uint16, err error) { t.Error(err) }})
	update(p.Ports, part(model.IPv6, only(), service(web, 30999, 1)))
	give(t, "here", "2001:db8:5::1/64")
	if addr := addressOn(t, here); addr.Flags&unix.IFA_F_TENTATIVE == 0 {
		t.Fatalf("%v is not tentative", addr)
	}
	update(p.Ports, part(model.IPv6, only("2001:db8:5::1")))
	await(t, p.opened, 1)
}

func addressOn(t *testing.T, link netlink.Link) netlink.Addr {
	t.Helper()
	addrs, err := netlink.AddrList(link, netlink.FAMILY_V6)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if a.Scope == unix.RT_SCOPE_UNIVERSE {
			return a
		}
	}
	t.Fatal("no address")
	return netlink.Addr{}
}

func TestAPortOfAnotherProgramIsOpenedOnceItIsFree(t *testing.T) {
	other, err := net.Listen("tcp4", "127.0.0.1:30999")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	told := make(chan error, 100)
	p := newLive(t, PortsOptions{Retry: time.Millisecond, Failed: func(_ model.Name, _ uint16, err error) { told <- err }})
	update(p.Ports, both(service(web, 30999, 3))...)
	if err := <-told; !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), ":30999") {
		t.Errorf("told %v", err)
	}
	other.Close()
	await(t, p.opened, 1)
	expectAll(t, map[string]string{"127.0.0.1": "200 3", "::1": "200 3"})
	if len(told) != 0 {
		t.Errorf("told again: %v", <-told)
	}
}

// exchange writes to a connection and reads one answer.
func exchange(t *testing.T, conn net.Conn, text string) *http.Response {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestARequestUnderWayWhileItsServiceIsDeleted(t *testing.T) {
	p := newLive(t, PortsOptions{})
	update(p.Ports, both(service(web, 30999, 1))...)
	await(t, p.opened, 1)
	conn, err := net.Dial("tcp", "127.0.0.1:30999")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if answer := exchange(t, conn, "GET / HTTP/1.1\r\nHost: node\r\n\r\n"); answer.StatusCode != 200 {
		t.Fatalf("before: %d", answer.StatusCode)
	}
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\n"); err != nil {
		t.Fatal(err)
	}
	update(p.Ports, both(gone(web))...)
	await(t, p.closed, 1)
	expectAll(t, map[string]string{"127.0.0.1": "refused", "::1": "refused"})
	answer := exchange(t, conn, "Host: node\r\n\r\n")
	if answer.StatusCode != 503 || answer.Header.Get("X-Load-Balancing-Endpoint-Weight") != "0" || !answer.Close {
		t.Errorf("%d, %v, closes %t", answer.StatusCode, answer.Header, answer.Close)
	}
	if n, err := conn.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the connection goes on: %d, %v", n, err)
	}
	update(p.Ports, both(service(web, 30999, 1))...)
	await(t, p.opened, 1)
	expectAll(t, map[string]string{"127.0.0.1": "200 1"})
}

func TestARestartFindsThePortsFree(t *testing.T) {
	var conns []net.Conn
	for range 3 {
		p := newLive(t, PortsOptions{Failed: func(_ model.Name, _ uint16, err error) { t.Error(err) }})
		update(p.Ports, both(service(web, 30999, 1))...)
		await(t, p.opened, 1)
		conn, err := net.Dial("tcp", "127.0.0.1:30999")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		exchange(t, conn, "GET / HTTP/1.1\r\nHost: node\r\n\r\n")
		conns = append(conns, conn)
		p.stop()
		if left := listening(t); len(left) > 0 {
			t.Fatalf("still listening: %q", left)
		}
	}
	for _, conn := range conns {
		if n, err := conn.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("a connection goes on: %d, %v", n, err)
		}
	}
}

func TestThousandsOfServices(t *testing.T) {
	p := newLive(t, PortsOptions{Failed: func(_ model.Name, _ uint16, err error) { t.Error(err) }})
	const n = 2000
	p.opened, p.closed = make(chan struct{}, n), make(chan struct{}, n)
	var services []plan.Service
	for i := range n {
		services = append(services, service(model.Name{Namespace: "default", Name: fmt.Sprint("s", i)}, uint16(29000+i), 1))
	}
	update(p.Ports, both(services...)...)
	await(t, p.opened, n)
	expectAll(t, map[string]string{"127.0.0.1": "200 1"})
	if open := len(listening(t)); open != n {
		t.Errorf("%d sockets listen, want %d", open, n)
	}
	for i := range services {
		services[i] = gone(services[i].Name)
	}
	update(p.Ports, both(services...)...)
	await(t, p.closed, n)
	expectAll(t, map[string]string{"127.0.0.1": "refused"})
}
