package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

func changed(svcs ...*model.Service) map[model.Name]struct{} {
	names := map[model.Name]struct{}{}
	for _, s := range svcs {
		names[s.Name] = struct{}{}
	}
	return names
}

func TestOnlyWhatChangedIsPlanned(t *testing.T) {
	a, b := service("a", "10.0.0.1:80 here ready"), service("b", "10.0.0.2:80 here ready")
	b.ClusterIPs = addrs("10.96.0.2")
	p := New(model.IPv4, Options{})
	s := snapshot(here, a, b)
	if first := p.Build(s); !first.All || len(first.Services) != 2 {
		t.Errorf("the first plan has %d services", len(first.Services))
	}
	s.Changed = changed(b)
	if next := p.Build(s); next.All || len(next.Services) != 1 {
		t.Errorf("after one change %d services were planned", len(next.Services))
	}
	s.Changed = map[model.Name]struct{}{}
	s.Node.Local = addrs("192.0.2.1")
	if next := p.Build(s); len(next.Services) != 0 {
		t.Errorf("a new interface address had %d services planned", len(next.Services))
	}
	s.Node.Zone = "z2"
	if next := p.Build(s); !next.All || len(next.Services) != 2 {
		t.Errorf("after the node moved %d services were planned", len(next.Services))
	}
}

func TestServiceThatIsGoneIsPlannedEmpty(t *testing.T) {
	a := service("a", "10.0.0.1:80 here ready")
	p := New(model.IPv4, Options{})
	p.Build(snapshot(here, a))
	s := snapshot(here)
	s.Changed = changed(a)
	planned, ok := p.Build(s).Services[a.Name]
	if !ok || planned.Ports != nil {
		t.Errorf("planned %v %v", planned, ok)
	}
}

func TestContestedFrontends(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(a, b *model.Service)
		want Conflict
	}{
		"by name": {
			func(a, b *model.Service) {
				a.ExternalIPs, b.ExternalIPs = addrs("203.0.113.1"), addrs("203.0.113.1")
			},
			Conflict{Frontend: Frontend{ExternalIP, addrs("203.0.113.1")[0], 80}, Winner: portName("a"), Loser: portName("b")},
		},
		"a cluster IP wins": {
			func(a, b *model.Service) { a.ExternalIPs = b.ClusterIPs },
			Conflict{Frontend: Frontend{ExternalIP, addrs("10.96.0.2")[0], 80}, Winner: portName("b"), Loser: portName("a")},
		},
		"node port": {
			func(a, b *model.Service) { a.Ports[0].NodePort, b.Ports[0].NodePort = 30000, 30000 },
			Conflict{Frontend: Frontend{Kind: NodePort, Port: 30000}, Winner: portName("a"), Loser: portName("b")},
		},
		"external and load balancer": {
			func(a, b *model.Service) {
				b.ExternalIPs, a.LoadBalancerIPs = addrs("203.0.113.1"), addrs("203.0.113.1")
			},
			Conflict{Frontend: Frontend{ExternalIP, addrs("203.0.113.1")[0], 80}, Winner: portName("a"), Loser: portName("b")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := service("a", "10.0.0.1:80 here ready"), service("b", "10.0.0.2:80 here ready")
			b.ClusterIPs = addrs("10.96.0.2")
			tc.set(a, b)
			tc.want.Protocol = model.TCP
			plan := New(model.IPv4, Options{}).Build(snapshot(here, a, b))
			if len(plan.Conflicts) != 1 || plan.Conflicts[0] != tc.want {
				t.Errorf("conflicts %+v, want %+v", plan.Conflicts, tc.want)
			}
			loser := plan.Services[tc.want.Loser.Name].Ports[0]
			if len(loser.Frontends) != 1 || loser.Frontends[0].Kind != ClusterIP {
				t.Errorf("the loser keeps %v", loser.Frontends)
			}
		})
	}
}

func portName(name string) model.PortName {
	return model.PortName{Name: model.Name{Namespace: "default", Name: name}, PortKey: http}
}

func TestLoserIsPlannedWhenTheWinnerGoes(t *testing.T) {
	a, b := service("a", "10.0.0.1:80 here ready"), service("b", "10.0.0.2:80 here ready")
	b.ClusterIPs = addrs("10.96.0.2")
	a.ExternalIPs, b.ExternalIPs = addrs("203.0.113.1"), addrs("203.0.113.1")
	p := New(model.IPv4, Options{})
	p.Build(snapshot(here, a, b))
	s := snapshot(here, b)
	s.Changed = changed(a)
	plan := p.Build(s)
	if got := plan.Services[b.Name].Ports; len(got) != 1 || len(got[0].Frontends) != 2 {
		t.Errorf("the loser is planned as %+v", got)
	}
	if len(plan.Conflicts) != 0 {
		t.Errorf("conflicts %v", plan.Conflicts)
	}
}

func TestTwoPortsOfOneServiceDoNotContest(t *testing.T) {
	a := service("a", "10.0.0.1:80 here ready")
	a.ExternalIPs, a.LoadBalancerIPs = addrs("203.0.113.1"), addrs("203.0.113.1")
	plan := New(model.IPv4, Options{}).Build(snapshot(here, a))
	if len(plan.Conflicts) != 0 || len(plan.Services[a.Name].Ports[0].Frontends) != 3 {
		t.Errorf("planned %+v, conflicts %v", plan.Services[a.Name], plan.Conflicts)
	}
}

func TestCommentsEndAboveTheLimit(t *testing.T) {
	svc := service("web")
	for i := range commentLimit {
		svc.Endpoints[http] = append(svc.Endpoints[http], endpoint(fmt.Sprintf("10.0.%d.%d:80 here", i/250, i%250)))
	}
	other := service("other")
	other.ClusterIPs = addrs("10.96.0.2")
	p := New(model.IPv4, Options{})
	if !p.Build(snapshot(here, svc, other)).Frame.Comments {
		t.Errorf("no comments at %d endpoints", commentLimit)
	}
	more := *svc
	more.Endpoints = map[model.PortKey][]model.Endpoint{http: append(svc.Endpoints[http], endpoint("10.1.0.1:80 here"))}
	s := snapshot(here, &more, other)
	s.Changed = changed(&more)
	plan := p.Build(s)
	if plan.Frame.Comments {
		t.Errorf("comments at %d endpoints", commentLimit+1)
	}
	if !plan.All || len(plan.Services) != 2 {
		t.Errorf("%d services were planned anew, want all", len(plan.Services))
	}
}

// TestChangesGiveTheSamePlanAsEverything changes services at random and
// compares what a planner knows by changes with a plan from nothing.
func TestChangesGiveTheSamePlanAsEverything(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		p := New(model.IPv4, Options{})
		s := snapshot(here)
		known := p.Build(s).Services
		for range 10 {
			changes := map[model.Name]*model.Service{}
			for range 1 + rnd.IntN(2) {
				name := fmt.Sprintf("s%d", rnd.IntN(5))
				changes[model.Name{Namespace: "default", Name: name}] = randomService(rnd, name)
			}
			s.Services = s.Services.With(changes)
			s.Changed = map[model.Name]struct{}{}
			for name := range changes {
				s.Changed[name] = struct{}{}
			}
			if rnd.IntN(4) == 0 {
				s.Node.Name = fmt.Sprintf("node%d", rnd.IntN(2))
			}
			maps.Copy(known, p.Build(s).Services)
			maps.DeleteFunc(known, func(_ model.Name, svc Service) bool { return svc.Ports == nil })
			want := New(model.IPv4, Options{}).Build(s).Services
			if !reflect.DeepEqual(known, want) {
				t.Fatalf("seed %d: known by changes\n%+v\nplanned from nothing\n%+v", seed, known, want)
			}
		}
	}
}

func randomService(rnd *rand.Rand, name string) *model.Service {
	if rnd.IntN(4) == 0 {
		return nil
	}
	svc := service(name, fmt.Sprintf("10.0.0.%d:80 here ready", rnd.IntN(3)))
	svc.ClusterIPs = addrs("10.96.1." + name[1:])
	svc.ExternalIPs = addrs(fmt.Sprintf("203.0.113.%d", rnd.IntN(3)))
	svc.Ports[0].NodePort = uint16(30000 + rnd.IntN(2))
	return svc
}
