package health

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
)

var (
	web, dns = model.Name{Namespace: "default", Name: "web"}, model.Name{Namespace: "kube-system", Name: "dns"}
	// all is where node ports are served that nothing limits.
	all = plan.NodePortScope{All: true}
)

func only(addrs ...string) (s plan.NodePortScope) {
	for _, a := range addrs {
		s.Addrs = append(s.Addrs, netip.MustParseAddr(a))
	}
	return s
}

// service is one that is asked for on port.
func service(name model.Name, port uint16, ready int) plan.Service {
	return plan.Service{Name: name, ReadyHere: ready, Ports: []plan.Port{
		{Name: model.PortName{Name: name}, HealthCheckNodePort: port},
		{Name: model.PortName{Name: name, PortKey: model.PortKey{Port: "other"}}, HealthCheckNodePort: port},
	}}
}

func gone(name model.Name) plan.Service { return plan.Service{Name: name} }

// part is one family's plan of what changed.
func part(f model.Family, scope plan.NodePortScope, services ...plan.Service) plan.Plan {
	p := plan.Plan{Family: f, Frame: plan.Frame{NodePorts: scope}, Services: map[model.Name]plan.Service{}}
	for _, s := range services {
		p.Services[s.Name] = s
	}
	return p
}

// both is the same for both families, with all addresses.
func both(services ...plan.Service) []plan.Plan {
	return []plan.Plan{part(model.IPv4, all, services...), part(model.IPv6, all, services...)}
}

func update(p *Ports, plans ...plan.Plan) { p.Update(plans, model.Node{}) }

func newPorts(t *testing.T, o PortsOptions) *Ports {
	t.Helper()
	if o.Healthy == nil {
		o.Healthy = func() bool { return true }
	}
	p, err := NewPorts(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPortsNameTheFieldThatCannotBeUsed(t *testing.T) {
	for want, o := range map[string]PortsOptions{
		"health: Healthy is missing":    {},
		"health: Retry -1s is negative": {Healthy: func() bool { return true }, Retry: -time.Second},
	} {
		if _, err := NewPorts(o); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestOneSocketForBothFamiliesOnlyWhereNothingIsLimited(t *testing.T) {
	for name, tc := range map[string]struct {
		scope4, scope6 plan.NodePortScope
		in4, in6       bool
		want           []string
	}{
		"both":           {all, all, true, true, []string{"tcp 0.0.0.0:30999"}},
		"IPv4 alone":     {all, all, true, false, []string{"tcp4 0.0.0.0:30999"}},
		"IPv6 alone":     {all, all, false, true, []string{"tcp6 [::]:30999"}},
		"one is limited": {only("192.0.2.1", "192.0.2.2"), all, true, true, []string{"tcp4 192.0.2.1:30999", "tcp4 192.0.2.2:30999", "tcp6 [::]:30999"}},
		"both limited":   {only("127.0.0.1"), only("2001:db8::1", "fe80::1"), true, true, []string{"tcp4 127.0.0.1:30999", "tcp6 [2001:db8::1]:30999"}},
		"no address":     {only(), only(), true, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPorts(t, PortsOptions{})
				h := newHost(p)
				run(t, p, h)
				plans := []plan.Plan{part(model.IPv4, tc.scope4), part(model.IPv6, tc.scope6)}
				for i, in := range []bool{tc.in4, tc.in6} {
					if in {
						plans[i].Services[web] = service(web, 30999, 1)
					}
				}
				update(p, plans...)
				h.expect(t, tc.want...)
				if p.Failing() != 0 {
					t.Errorf("%d failing", p.Failing())
				}
			})
		})
	}
}

func TestPortsFollowWhatIsDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPorts(t, PortsOptions{})
		h := newHost(p)
		run(t, p, h)
		four := func(scope plan.NodePortScope, services ...plan.Service) {
			update(p, part(model.IPv4, scope, services...))
		}
		four(only("192.0.2.1"), service(web, 30999, 1), service(dns, 30998, 0))
		h.expect(t, "tcp4 192.0.2.1:30999", "tcp4 192.0.2.1:30998")
		four(only("192.0.2.1", "192.0.2.2"), gone(dns)) // an address more
		h.expect(t, "tcp4 192.0.2.1:30999", "tcp4 192.0.2.2:30999")
		tries := h.tries
		four(only("192.0.2.2"))
		h.expect(t, "tcp4 192.0.2.2:30999")
		four(only("192.0.2.2"), service(web, 30999, 7))
		h.expect(t, "tcp4 192.0.2.2:30999")
		if h.tries != tries {
			t.Error("what stays was opened anew")
		}
		four(only("192.0.2.2"), service(web, 30997, 7)) // another port
		h.expect(t, "tcp4 192.0.2.2:30997")
		four(only("192.0.2.2"), service(web, 30998, 7), service(dns, 30997, 7)) // which goes to another service
		h.expect(t, "tcp4 192.0.2.2:30998", "tcp4 192.0.2.2:30997")
		four(all)
		h.expect(t, "tcp4 0.0.0.0:30998", "tcp4 0.0.0.0:30997")
		update(p, both(service(web, 30998, 7))...) // it has the other family too
		h.expect(t, "tcp 0.0.0.0:30998", "tcp4 0.0.0.0:30997")
		update(p, part(model.IPv6, all)) // the kernel does not serve IPv4 any more
		h.expect(t, "tcp6 [::]:30998")
		update(p, both(gone(web))...)
		h.expect(t)
		update(p, both(service(web, 30998, 7))...)
		h.expect(t, "tcp 0.0.0.0:30998")
	})
}

type failure struct {
	service model.Name
	port    uint16
	err     string
}

// failing are Ports that keep what they tell of failures.
func failing(t *testing.T, taken ...string) (*Ports, *host, func() []failure) {
	t.Helper()
	var told []failure // by the goroutine of Run, which the callers wait for
	p := newPorts(t, PortsOptions{Failed: func(service model.Name, port uint16, err error) {
		told = append(told, failure{service, port, err.Error()})
	}})
	h := newHost(p, taken...)
	run(t, p, h)
	return p, h, func() []failure { synctest.Wait(); return told }
}

func TestAPortThatIsTakenIsToldOnceAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, h, told := failing(t, "tcp 0.0.0.0:30999")
		update(p, both(service(web, 30999, 1), service(dns, 30998, 1))...)
		time.Sleep(14 * time.Second)
		h.expect(t, "tcp 0.0.0.0:30998")
		if want := []failure{{web, 30999, "tcp 0.0.0.0:30999 is taken"}}; !slices.Equal(told(), want) || p.Failing() != 1 {
			t.Errorf("told %v, %d failing; want %v, 1", told(), p.Failing(), want)
		}
		if h.tries != 2+2 {
			t.Errorf("%d attempts, want one for each service at once and one more after 5 and 10 seconds", h.tries)
		}
		h.free("tcp 0.0.0.0:30999")
		time.Sleep(time.Second)
		h.expect(t, "tcp 0.0.0.0:30998", "tcp 0.0.0.0:30999")
		time.Sleep(time.Hour)
		if h.tries != 2+3 || p.Failing() != 0 || len(told()) != 1 {
			t.Errorf("after it was opened: %d attempts, %d failing, told %v", h.tries, p.Failing(), told())
		}
	})
}

func TestAPortThatIsTakenIsForgottenWithItsService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, h, told := failing(t, "tcp 0.0.0.0:30999")
		update(p, both(service(web, 30999, 1))...)
		synctest.Wait()
		update(p, both(gone(web))...)
		time.Sleep(time.Hour)
		h.expect(t)
		if h.tries != 1 || p.Failing() != 0 {
			t.Errorf("%d attempts, %d failing", h.tries, p.Failing())
		}
		update(p, both(service(web, 30999, 1))...)
		if len(told()) != 2 {
			t.Errorf("told %v, want each service's first failure", told())
		}
	})
}

func TestAnAddressThatCannotBeHadCostsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, h, told := failing(t, "tcp4 192.0.2.1:30999")
		update(p, part(model.IPv4, only("192.0.2.1", "192.0.2.2"), service(web, 30999, 1)))
		h.expect(t, "tcp4 192.0.2.2:30999")
		if len(told()) != 1 || p.Failing() != 1 {
			t.Errorf("told %v, %d failing", told(), p.Failing())
		}
		update(p, part(model.IPv4, only("192.0.2.2")))
		h.expect(t, "tcp4 192.0.2.2:30999")
		if p.Failing() != 0 {
			t.Errorf("%d failing where no address is missing", p.Failing())
		}
	})
}

func TestOfTwoServicesWithOnePortTheOneWaitsForTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, h, told := failing(t)
		update(p, both(service(dns, 30999, 1))...)
		synctest.Wait()
		update(p, both(service(web, 30999, 1))...)
		time.Sleep(time.Minute)
		if want := []failure{{web, 30999, "tcp 0.0.0.0:30999 is taken"}}; !slices.Equal(told(), want) {
			t.Errorf("told %v, want %v", told(), want)
		}
		update(p, both(gone(dns))...)
		h.expect(t, "tcp 0.0.0.0:30999")
		if p.Failing() != 0 {
			t.Errorf("%d failing after the other is gone", p.Failing())
		}
	})
}

func TestAPortThatIsLostIsOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPorts(t, PortsOptions{})
		h := newHost(p)
		run(t, p, h)
		update(p, both(service(web, 30999, 1))...)
		synctest.Wait()
		h.open["tcp 0.0.0.0:30999"].broken <- errors.New("the system has taken it away")
		h.expect(t, "tcp 0.0.0.0:30999")
		if h.tries != 2 {
			t.Errorf("opened %d times, want 2", h.tries)
		}
	})
}

// Several thousand services are no reason to do anything while they stay.
func TestNothingNewCostsNothing(t *testing.T) {
	p := newPorts(t, PortsOptions{})
	var services []plan.Service
	for i := range 5000 {
		services = append(services, service(model.Name{Namespace: "default", Name: fmt.Sprint("s", i)}, uint16(20000+i), 1))
	}
	update(p, both(services...)...)
	<-p.wake
	clear(p.moved)
	nothing := both()
	if n := testing.AllocsPerRun(100, func() { p.Update(nothing, model.Node{}) }); n > 4 {
		t.Errorf("%.0f allocations", n)
	}
	update(p, both(services...)...) // planned again, with the same outcome
	if len(p.wake) != 0 || len(p.moved) != 0 {
		t.Errorf("%d services are looked at again", len(p.moved))
	}
}
