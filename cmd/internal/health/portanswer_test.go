package health

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
)

// request is one that came to an address of this node on the port of service.
func request(p *Ports, service model.Name, to string) *http.Request {
	ctx := context.WithValue(context.Background(), asked{}, p.checks[service])
	local := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(to), 30999))
	return httptest.NewRequest(http.MethodGet, "/any/path", nil).WithContext(context.WithValue(ctx, http.LocalAddrContextKey, local))
}

func expectAnswer(t *testing.T, p *Ports, r *http.Request, code, ready int, healthy bool) {
	t.Helper()
	w := httptest.NewRecorder()
	p.answer(w, r)
	want := strings.ReplaceAll(fmt.Sprintf(`{
_"service": {
__"namespace": "default",
__"name": "web"
_},
_"localEndpoints": %d,
_"serviceProxyHealthy": %t
}`, ready, healthy), "_", "\t")
	if w.Code != code || w.Body.String() != want {
		t.Errorf("%d\n%s\nwant %d\n%s", w.Code, w.Body, code, want)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "X-Content-Type-Options": "nosniff",
		"X-Load-Balancing-Endpoint-Weight": fmt.Sprint(ready),
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

const to4, to6 = "192.0.2.1", "2001:db8::1"

func TestABalancerIsToldOfReadyEndpointsHere(t *testing.T) {
	healthy := true
	p := newPorts(t, PortsOptions{Healthy: func() bool { return healthy }})
	update(p, both(service(web, 30999, 2))...)
	r := request(p, web, to4)
	expectAnswer(t, p, r, 200, 2, true)
	update(p, both()...)
	expectAnswer(t, p, r, 200, 2, true) // nothing new about it
	update(p, both(service(web, 30999, 0))...)
	expectAnswer(t, p, r, 503, 0, true)
	update(p, both(service(web, 30999, 1))...)
	healthy = false
	expectAnswer(t, p, r, 503, 1, false)
	healthy = true
	expectAnswer(t, p, r, 200, 1, true)
}

func TestABalancerIsNotSentToAServiceThatIsGone(t *testing.T) {
	everything := func(services ...plan.Service) []plan.Plan {
		plans := both(services...)
		plans[0].All, plans[1].All = true, true
		return plans
	}
	for name, after := range map[string][]plan.Plan{
		"deleted":                    both(gone(web)),
		"not in a plan of all":       everything(service(dns, 30999, 5)),
		"no health check any more":   both(service(web, 0, 5)),
		"another health check port":  both(service(web, 30998, 5)),
		"no family is served at all": nil,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPorts(t, PortsOptions{})
			update(p, both(service(web, 30999, 2))...)
			r := request(p, web, to4)
			update(p, after...)
			expectAnswer(t, p, r, 503, 0, true)
		})
	}
}

// kube-proxy has a socket for each family, with a count of its own.
func TestABalancerIsToldOfEndpointsOfItsFamily(t *testing.T) {
	p := newPorts(t, PortsOptions{})
	update(p, part(model.IPv4, all, service(web, 30999, 2)), part(model.IPv6, all, service(web, 30999, 0)))
	expectAnswer(t, p, request(p, web, to4), 200, 2, true)
	expectAnswer(t, p, request(p, web, "::ffff:192.0.2.1"), 200, 2, true) // as a socket of both families has it
	expectAnswer(t, p, request(p, web, to6), 503, 0, true)
}

func TestABalancerIsNotSentToAServiceWhoseRulesCannotBeWritten(t *testing.T) {
	p := newPorts(t, PortsOptions{})
	update(p, both(service(web, 30999, 2), service(dns, 30998, 2))...)
	p.SetAside(web)
	expectAnswer(t, p, request(p, web, to4), 503, 2, false)
	p.SetAside(dns)
	expectAnswer(t, p, request(p, web, to4), 200, 2, true)
}

func TestABalancerIsNotSentHereOnceSyncsHaveFailedForTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Options{})
		s.Synced(model.Families[:]...)
		p := newPorts(t, PortsOptions{Healthy: s.Healthy})
		update(p, both(service(web, 30999, 2))...)
		r := request(p, web, to4)
		s.Queued(model.Families[:]...)
		for range 2 { // failed syncs, of which nobody is told
			expectAnswer(t, p, r, 200, 2, true)
			time.Sleep(syncPeriod)
		}
		expectAnswer(t, p, r, 503, 2, false)
		s.Synced(model.Families[:]...)
		expectAnswer(t, p, r, 200, 2, true)
	})
}

// What a change of the objects does to the answer, by way of the planner.
func TestAnAnswerFollowsTheEndpointsOfTheService(t *testing.T) {
	http := model.PortKey{Port: "http", Protocol: model.TCP}
	from := func(eps ...model.Endpoint) *model.Service {
		return &model.Service{
			Name: web, HealthCheckNodePort: 30999, ExternalLocal: true,
			Ports: []model.Port{{PortKey: http, Number: 80}}, ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.1")},
			Endpoints: map[model.PortKey][]model.Endpoint{http: eps},
		}
	}
	here := model.Endpoint{Addr: netip.MustParseAddrPort("10.0.0.1:80"), Node: "here", Ready: true, Serving: true}
	there, leaving := here, here
	there.Node = "there"
	leaving.Ready, leaving.Terminating = false, true

	p := newPorts(t, PortsOptions{})
	planners := [...]*plan.Planner{plan.New(model.IPv4, plan.Options{}), plan.New(model.IPv6, plan.Options{})}
	var services model.Services
	set := func(svc *model.Service) {
		services = services.With(map[model.Name]*model.Service{web: svc})
		s := model.Snapshot{Node: model.Node{Name: "here"}, Services: services, Changed: map[model.Name]struct{}{web: {}}}
		update(p, planners[0].Build(s), planners[1].Build(s))
	}
	set(from(here, there))
	r := request(p, web, to4)
	expectAnswer(t, p, r, 200, 1, true)
	set(from(there)) // the last one here is gone
	expectAnswer(t, p, r, 503, 0, true)
	set(from(here))
	expectAnswer(t, p, r, 200, 1, true)
	set(from(leaving)) // which still serves, but not for long
	expectAnswer(t, p, r, 503, 0, true)
	set(from(here))
	set(nil)
	expectAnswer(t, p, r, 503, 0, true)
}
