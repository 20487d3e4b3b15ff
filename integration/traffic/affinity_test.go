package traffic

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/xt"
	"github.com/nlproxy/nlproxy/integration/lab"
)

// sticky is a spec with affinity of so many seconds.
func sticky(seconds int) string {
	return fmt.Sprintf("sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: %d}}", seconds)
}

// answer is who answers a new connection; t fails if nobody does.
func (p *proxy) answer(t *testing.T, from *lab.Place, network string, to netip.AddrPort, o lab.DialOptions) string {
	t.Helper()
	got := p.reach(from, network, to, o)
	if got.Kind != lab.Answered {
		t.Fatalf("%s to %s, %s: %s", from, to, network, got)
	}
	return got.By
}

func TestAffinityKeepsAClientAtItsEndpoint(t *testing.T) {
	t.Parallel()
	s := service{name: "sticky", number: 1, kind: "LoadBalancer", spec: sticky(10800),
		endpoints: at("pod-1", "pod-2", "remote-1")}
	p := newProxy(t, settings())
	p.set(t, s)
	for _, from := range everybody() {
		for _, network := range networks() {
			for _, v6 := range []bool{false, true} {
				first := p.answer(t, p.place(t, from), network, clusterIP(s, v6), lab.DialOptions{})
				// Every frontend leads to the same pool, and so to the same pin.
				for _, by := range []frontend{clusterIP, nodePort, ingress} {
					for range 20 {
						if now := p.answer(t, p.place(t, from), network, by(s, v6), lab.DialOptions{}); now != first {
							t.Fatalf("%s to %s, %s: answered by %s, before by %s", from, by(s, v6), network, now, first)
						}
					}
				}
			}
		}
	}
}

// manyClients gives the node 20 addresses more in each family to send from.
func (p *proxy) manyClients(t *testing.T) (clients []netip.Addr) {
	t.Helper()
	for i := range 20 {
		for _, format := range []string{"172.16.0.%d", "fd00:172::%d"} {
			clients = append(clients, netip.MustParseAddr(fmt.Sprintf(format, i+1)))
		}
	}
	p.own(t, "clients", clients...)
	return clients
}

// TestAffinityEndsAfterItsTimeout pins 40 clients for a second and for an hour.
// While the second passes, they stay with their endpoint of the other service,
// and then at least one of them has a new one of the first: with three
// endpoints, all stay by chance once in 10¹⁹.
func TestAffinityEndsAfterItsTimeout(t *testing.T) {
	t.Parallel()
	short := service{name: "short", number: 1, spec: sticky(1), endpoints: at("pod-1", "pod-2", "remote-1")}
	long := service{name: "long", number: 2, spec: sticky(3600), endpoints: short.endpoints}
	p := newProxy(t, settings())
	p.set(t, short, long)
	for _, f := range model.Families {
		for port, want := range map[string]uint32{"default/short:tcp": 1, "default/long:tcp": 3600} {
			checks := only[xt.RecentInfo](t, p.spreading(t, f, port)...)
			for _, c := range checks {
				if c.Seconds != want {
					t.Errorf("%s, %s: %d seconds, want %d", port, f, c.Seconds, want)
				}
			}
			if len(checks) != 3 {
				t.Errorf("%s, %s: %d checks, want one for each endpoint", port, f, len(checks))
			}
		}
	}
	clients := p.manyClients(t)
	ask := func(s service) []string {
		var by []string
		for _, c := range clients {
			by = append(by, p.answer(t, p.Self, "tcp", clusterIP(s, c.Is6()), lab.DialOptions{Source: c}))
		}
		return by
	}
	shortOnes, longOnes := ask(short), ask(long)
	for end := time.Now().Add(1200 * time.Millisecond); time.Now().Before(end); {
		if now := ask(long); !slices.Equal(now, longOnes) {
			t.Fatalf("pinned for an hour at %v, then at %v", longOnes, now)
		}
	}
	if now := ask(short); slices.Equal(now, shortOnes) {
		t.Errorf("pinned for a second, all clients are still at %v", now)
	}
}

func TestAffinityLeavesAnEndpointThatIsNotReady(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"Cluster", "Local"} {
		t.Run(policy, func(t *testing.T) {
			s := service{name: "sticky", number: 1, kind: "NodePort",
				spec: sticky(10800) + ", externalTrafficPolicy: " + policy}
			p := newProxy(t, settings())
			pods := []string{"pod-1", "pod-2"}
			without := func(sick string) service {
				s := s
				for _, pod := range pods {
					condition := ready
					if pod == sick {
						condition = unready
					}
					s.endpoints = append(s.endpoints, all(condition, pod)...)
				}
				return s
			}
			for _, v6 := range []bool{false, true} {
				p.set(t, without("nobody"))
				pinned := p.answer(t, p.Outside, "tcp", nodePort(s, v6), lab.DialOptions{})
				for range 4 {
					p.set(t, without(pinned))
					next := p.answer(t, p.Outside, "tcp", nodePort(s, v6), lab.DialOptions{})
					for range 5 {
						if now := p.answer(t, p.Outside, "tcp", nodePort(s, v6), lab.DialOptions{}); now == pinned || now != next {
							t.Fatalf("%s is not ready, but answered by %s and %s", pinned, next, now)
						}
					}
					pinned = next
				}
			}
		})
	}
}

// TestPinsOutliveChangesAndRestarts pins a thousand clients to 20 endpoints, of
// which none gets more than it can remember: 50 on average, and 101 in one of
// 10¹⁰ runs. The limit is 100 (ip_list_tot, net/netfilter/xt_recent.c, Linux
// 6.18).
func TestPinsOutliveChangesAndRestarts(t *testing.T) {
	t.Parallel()
	p := newLargeProxy(t, lab.Options{Pods: 10, RemotePods: 11}, settings())
	s := service{name: "sticky", number: 1, spec: sticky(10800)}
	for i := range 10 {
		s.endpoints = append(s.endpoints, at(fmt.Sprintf("pod-%d", i+1), fmt.Sprintf("remote-%d", i+1))...)
	}
	another := s.with(append(at("remote-11"), s.endpoints...)...)
	p.set(t, s)
	clients := p.thousandClients(t)
	first := p.answers(t, clients, clusterIP(s, false))
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"the same again", func() { p.set(t, s) }},
		{"another service", func() { p.set(t, s, service{name: "other", number: 2, endpoints: at("pod-1")}) }},
		{"an endpoint more", func() { p.set(t, another) }},
		{"a restart", func() { p.dial(t); p.start(t); p.set(t, another) }},
		{"a restart with an endpoint less", func() { p.start(t); p.set(t, s) }},
	} {
		step.do()
		now, moved := p.answers(t, clients, clusterIP(s, false)), 0
		for i := range clients {
			if now[i] != first[i] {
				moved++
			}
		}
		if moved > 0 {
			t.Errorf("after %s, %d of %d clients are elsewhere", step.name, moved, len(clients))
		}
	}
}

// thousandClients makes a whole range the node's own.
func (p *proxy) thousandClients(t *testing.T) (clients []netip.Addr) {
	t.Helper()
	routes, err := p.Self.Namespace.Netlink()
	if err != nil {
		t.Fatal(err)
	}
	defer routes.Close()
	lo, err := routes.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	err = routes.RouteAdd(&netlink.Route{LinkIndex: lo.Attrs().Index, Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_LOCAL,
		Scope: netlink.SCOPE_HOST, Dst: &net.IPNet{IP: net.IPv4(172, 20, 0, 0), Mask: net.CIDRMask(16, 32)}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		clients = append(clients, netip.AddrFrom4([4]byte{172, 20, byte(1 + i/250), byte(1 + i%250)}))
	}
	return clients
}

// answers is who answers each of the node's clients, some at a time.
func (p *proxy) answers(t *testing.T, clients []netip.Addr, to netip.AddrPort) []string {
	t.Helper()
	by := make([]string, len(clients))
	var running sync.WaitGroup
	for first := range abreast {
		running.Go(func() {
			for i := first; i < len(clients); i += abreast {
				got := p.reach(p.Self, "udp", to, lab.DialOptions{Source: clients[i]})
				if by[i] = got.By; got.Kind != lab.Answered {
					t.Errorf("%s to %s: %s", clients[i], to, got)
				}
			}
		})
	}
	running.Wait()
	return by
}
