package traffic

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/xt"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

// sticky is a spec with affinity of so many seconds.
func sticky(seconds int) string {
	return fmt.Sprintf("sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: %d}}", seconds)
}

// answer is who answers a new connection; t fails if nobody does.
func (p *proxy) answer(t *testing.T, from *lab.Place, network string, to netip.AddrPort, o lab.DialOptions) string {
	t.Helper()
	got := from.Dial(network, to, o)
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
			checks := only[xt.RecentInfo](t, p.chainsOf(t, f, "KUBE-SVC-", port)...)
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

// listFile is the file of a list of clients, which is the thread's network
// namespace's. Not everybody may open it.
func listFile(name string) string { return "/proc/thread-self/net/xt_recent/" + name }

// pin puts clients into a list.
func (p *proxy) pin(t *testing.T, list string, clients []netip.Addr) {
	t.Helper()
	err := p.Self.Namespace.Do(func() error {
		for _, c := range clients {
			if err := os.WriteFile(listFile(list), []byte("+"+c.String()), 0); err != nil {
				return err
			}
		}
		return nil
	})
	if os.IsPermission(err) {
		labtest.Missing(t, "right to write lists of xt_recent: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// pinned are the clients in a list, sorted.
func (p *proxy) pinned(t *testing.T, list string) []string {
	t.Helper()
	var text []byte
	err := p.Self.Namespace.Do(func() (err error) {
		text, err = os.ReadFile(listFile(list))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var clients []string
	for line := range strings.Lines(string(text)) {
		client, _, _ := strings.Cut(strings.TrimPrefix(line, "src="), " ")
		clients = append(clients, client)
	}
	slices.Sort(clients)
	return clients
}

// TestPinsOutliveChangesAndRestarts pins 100 clients to each of ten endpoints;
// a list holds no more (ip_list_tot, net/netfilter/xt_recent.c, Linux 6.18).
func TestPinsOutliveChangesAndRestarts(t *testing.T) {
	t.Parallel()
	s := service{name: "sticky", number: 1, spec: sticky(10800), endpoints: at("pod-1", "pod-2", "remote-1", "remote-2",
		"remote-11", "remote-12", "remote-13", "remote-14", "remote-15", "remote-16")}
	p := newProxy(t, settings())
	p.set(t, s)
	clients := p.manyClients(t)
	lists := p.lists(t, model.IPv4, "default/sticky:tcp")
	if len(lists) != 10 {
		t.Fatalf("lists %v, want ten", lists)
	}
	want := map[string][]string{}
	for endpoint, list := range lists {
		p.pin(t, list, pinnedTo(endpoint, clients))
		if want[list] = p.pinned(t, list); len(want[list]) != 100 {
			t.Fatalf("%d clients of %s, want 100", len(want[list]), endpoint)
		}
	}
	another := s.with(append(at("remote-3"), s.endpoints...)...)
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
		for endpoint, list := range lists {
			if got := p.pinned(t, list); !slices.Equal(got, want[list]) {
				t.Errorf("%s: %d clients of %s, before %d", step.name, len(got), endpoint, len(want[list]))
			}
		}
		for i, c := range clients {
			if !c.Is4() {
				continue
			}
			place := []string{"pod-1", "remote-2"}[i/2%2]
			if by := p.answer(t, p.Self, "tcp", clusterIP(s, false), lab.DialOptions{Source: c}); by != place {
				t.Errorf("%s: %s was pinned to %s, but answered by %s", step.name, c, place, by)
			}
		}
	}
}

// pinnedTo are 100 clients to pin to an endpoint: those that exist, by turns,
// to pod-1 and remote-2, and others.
func pinnedTo(endpoint netip.AddrPort, existing []netip.Addr) []netip.Addr {
	var clients []netip.Addr
	for i, c := range existing {
		place := []string{"pod-1", "remote-2"}[i/2%2]
		if c.Is4() && addressOf(place, false) == endpoint.Addr() {
			clients = append(clients, c)
		}
	}
	bytes := endpoint.Addr().As4()
	for n := byte(1); len(clients) < 100; n++ {
		clients = append(clients, netip.AddrFrom4([4]byte{172, 20 + bytes[2], bytes[3], n}))
	}
	return clients
}
