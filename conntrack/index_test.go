package conntrack

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
)

// settings tell pods by their addresses.
var settings = plan.Options{
	NodePorts: plan.NodePorts{Localhost: true},
	Detect: plan.Detect{
		Mode:         plan.DetectClusterCIDR,
		ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:244::/32")},
	},
}

var thisNode = model.Node{
	Name:      "here",
	Addresses: addrs("192.168.1.10", "fd00:1::10"),
	Local:     addrs("10.244.1.1", "127.0.0.1", "192.168.1.10", "::1", "fd00:1::10", "fe80::1"),
}

func addrs(texts ...string) (all []netip.Addr) {
	for _, s := range texts {
		all = append(all, netip.MustParseAddr(s))
	}
	return all
}

// state is a planner for each family and the index that is told of its plans.
type state struct {
	t        testing.TB
	planners [2]*plan.Planner
	services model.Services
	node     model.Node
	started  bool
	*index
}

func newState(t testing.TB, o plan.Options, protocols ...model.Protocol) *state {
	if protocols == nil {
		protocols = []model.Protocol{model.UDP}
	}
	return &state{
		t: t, node: thisNode, index: newIndex(protocols),
		planners: [2]*plan.Planner{plan.New(model.IPv4, o), plan.New(model.IPv6, o)},
	}
}

// set gives services new states, nil for gone, and reports whether flows may
// have become stale.
func (s *state) set(changes map[model.Name]*model.Service) bool {
	s.services = s.services.With(changes)
	snapshot := model.Snapshot{Node: s.node, Services: s.services}
	if s.started {
		snapshot.Changed = map[model.Name]struct{}{}
		for n := range changes {
			snapshot.Changed[n] = struct{}{}
		}
	}
	s.started = true
	var plans []plan.Plan
	for _, p := range s.planners {
		plans = append(plans, p.Build(snapshot))
	}
	return s.update(plans, s.node)
}

func (s *state) put(svc *model.Service) bool {
	return s.set(map[model.Name]*model.Service{svc.Name: svc})
}

func (s *state) remove(svc *model.Service) bool {
	return s.set(map[model.Name]*model.Service{svc.Name: nil})
}

// want fails the test unless each flow is orphaned so; 0 means that it stays.
func (s *state) want(when string, flows map[string]Orphan) {
	s.t.Helper()
	for text, want := range flows {
		f := parse(s.t, text)
		if got, stale := s.stale(f); stale != (want != 0) || stale && got != want {
			s.t.Errorf("%s: %s: stale %v, %s; want %s", when, text, stale, got, want)
		}
	}
}

// parse reads "client > destination < who answers", UDP.
func parse(t testing.TB, text string) *Flow {
	t.Helper()
	var client, to, by string
	if _, err := fmt.Sscanf(text, "%s > %s < %s", &client, &to, &by); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	f := &Flow{Protocol: model.UDP, Original: tuple(client, to), Reply: tuple(by, client)}
	f.Family = model.FamilyOf(f.Original.Destination.Addr())
	return f
}

var dns = model.PortKey{Port: "dns", Protocol: model.UDP}

// service has all kinds of frontends, and ready endpoints on this node or, with
// a leading "@", elsewhere.
func service(name string, endpoints ...string) *model.Service {
	svc := &model.Service{
		Name:            model.Name{Namespace: "default", Name: name},
		Ports:           []model.Port{{PortKey: dns, Number: 53, NodePort: 30053}},
		ClusterIPs:      addrs("10.96.0.10", "fd00:96::10"),
		ExternalIPs:     addrs("198.51.100.1"),
		LoadBalancerIPs: addrs("203.0.113.1"),
		Endpoints:       map[model.PortKey][]model.Endpoint{},
	}
	for _, e := range endpoints {
		ep := model.Endpoint{Ready: true, Serving: true, Node: "here"}
		if e[0] == '@' {
			e, ep.Node = e[1:], "there"
		}
		ep.Addr = netip.MustParseAddrPort(e)
		svc.Endpoints[dns] = append(svc.Endpoints[dns], ep)
	}
	return svc
}

func TestFlowThatBeganBeforeThereWasAnEndpointIsStale(t *testing.T) {
	s := newState(t, settings)
	s.put(service("dns"))
	if !s.put(service("dns", "10.244.1.5:53")) {
		t.Error("the first endpoint matters to no flow")
	}
	s.want("with an endpoint", map[string]Orphan{
		"10.244.1.9:4000 > 10.96.0.10:53 < 10.96.0.10:53":          NotTranslated,
		"10.244.1.9:4000 > 10.96.0.10:53 < 10.244.1.5:53":          0,
		"192.0.2.9:4000 > 192.168.1.10:30053 < 192.168.1.10:30053": NotTranslated,
	})
}

// A virtual switch tracks a packet in a zone of its own before ours translates
// it: what it has of that packet is right as it is.
func TestUntranslatedFlowInAnotherZoneStays(t *testing.T) {
	s := newState(t, settings)
	s.put(service("dns", "10.244.1.5:53"))
	for text, want := range map[string]bool{
		"10.244.1.9:4000 > 10.96.0.10:53 < 10.96.0.10:53":  false,
		"10.244.1.9:4000 > 10.96.0.10:53 < 10.244.1.66:53": true,
	} {
		f := parse(t, text)
		f.Zone = 7
		if _, stale := s.stale(f); stale != want {
			t.Errorf("%s in zone 7: stale %v, want %v", text, stale, want)
		}
	}
}

func TestEveryFlowIsStaleWithoutEndpoints(t *testing.T) {
	s := newState(t, settings)
	s.put(service("dns", "10.244.1.9:53"))
	if !s.put(service("dns")) {
		t.Error("the last endpoint matters to no flow")
	}
	s.want("without endpoints", map[string]Orphan{
		"10.244.1.2:4000 > 10.96.0.10:53 < 10.244.1.9:53":         EndpointGone,
		"10.244.1.2:4000 > 10.96.0.10:53 < 10.96.0.10:53":         NotTranslated,
		"192.0.2.9:4000 > 203.0.113.1:53 < 10.244.1.9:53":         EndpointGone,
		"192.0.2.9:4000 > 198.51.100.1:53 < 10.244.1.9:53":        EndpointGone,
		"192.0.2.9:4000 > 192.168.1.10:30053 < 10.244.1.9:53":     EndpointGone,
		"[2001:db8::9]:4 > [fd00:1::10]:30053 < [fd00:244::5]:53": EndpointGone,
	})
}

func TestStartSparesFlowsThatAreRight(t *testing.T) {
	s := newState(t, settings)
	s.put(service("dns", "10.244.1.5:53", "@10.244.2.5:53"))
	s.want("at the start", map[string]Orphan{
		"10.244.1.2:4000 > 10.96.0.10:53 < 10.244.1.5:53": 0,
		"10.244.1.2:4001 > 10.96.0.10:53 < 10.244.2.5:53": 0,
		"10.244.1.2:4002 > 10.96.0.10:53 < 10.244.1.6:53": EndpointGone,
		"10.244.1.2:4003 > 10.96.0.11:53 < 10.244.1.6:53": 0,
	})
}

func TestNodePortIsOneOnTheNodesAddressesOnly(t *testing.T) {
	s := newState(t, settings)
	s.put(service("dns", "10.244.1.5:53"))
	s.want("node port", map[string]Orphan{
		"192.0.2.9:4000 > 192.168.1.10:30053 < 10.244.1.6:53":  EndpointGone,
		"127.0.0.1:4000 > 127.0.0.1:30053 < 10.244.1.6:53":     EndpointGone,
		"127.0.0.1:4000 > 127.7.7.7:30053 < 10.244.1.6:53":     EndpointGone,
		"[fd00::9]:40 > [fd00:1::10]:30053 < [fd00:244::6]:53": EndpointGone,
		"[::1]:4000 > [::1]:30053 < [::1]:30053":               0, // not served there
		"10.244.1.2:4000 > 8.8.8.8:30053 < 8.8.8.8:30053":      0,
		"10.244.1.2:4000 > 8.8.8.8:30053 < 10.244.1.6:53":      0,
	})
	chosen := settings
	chosen.NodePorts = plan.NodePorts{Prefixes: []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16")}}
	s = newState(t, chosen)
	s.put(service("dns", "10.244.1.5:53"))
	s.want("node port on chosen addresses", map[string]Orphan{
		"192.0.2.9:4000 > 192.168.1.10:30053 < 10.244.1.6:53": EndpointGone,
		"192.0.2.9:4000 > 10.244.1.1:30053 < 10.244.1.6:53":   0,
		"127.0.0.1:4000 > 127.0.0.1:30053 < 10.244.1.6:53":    0,
	})
}

func TestAddressThatTheNodeGetsMatters(t *testing.T) {
	s := newState(t, settings)
	s.put(service("dns", "10.244.1.5:53"))
	for _, c := range []struct {
		more string
		want bool
	}{{"192.168.1.10", false}, {"fe80::2", false}, {"192.168.1.99", true}, {"192.168.1.99", false}} {
		s.node.Local = append(s.node.Local[:len(s.node.Local):len(s.node.Local)], netip.MustParseAddr(c.more))
		if got := s.set(nil); got != c.want {
			t.Errorf("%s: matters %v, want %v", c.more, got, c.want)
		}
	}
	s.want("new address", map[string]Orphan{"192.0.2.9:4000 > 192.168.1.99:30053 < 192.168.1.99:30053": NotTranslated})
}

func TestPolicyLocalCountsEndpointsOfThisNodeOnly(t *testing.T) {
	s := newState(t, settings)
	local := func(eps ...string) *model.Service {
		svc := service("dns", eps...)
		svc.InternalLocal, svc.ExternalLocal = true, true
		return svc
	}
	s.put(local("@10.244.2.5:53", "10.244.1.5:53"))
	if !s.put(local("@10.244.2.5:53", "10.244.1.6:53")) {
		t.Error("a replaced local endpoint matters to no flow")
	}
	s.want("policies Local", map[string]Orphan{
		"10.244.1.2:4000 > 10.96.0.10:53 < 10.244.1.5:53":      EndpointGone,
		"10.244.1.2:4000 > 10.96.0.10:53 < 10.244.2.5:53":      EndpointGone,
		"10.244.1.2:4000 > 10.96.0.10:53 < 10.244.1.6:53":      0,
		"192.0.2.9:4000 > 192.168.1.10:30053 < 10.244.2.5:53":  EndpointElsewhere,
		"192.0.2.9:4000 > 203.0.113.1:53 < 10.244.1.6:53":      0,
		"10.244.1.2:4000 > 203.0.113.1:53 < 10.244.2.5:53":     0, // a pod
		"192.168.1.10:4000 > 203.0.113.1:53 < 10.244.2.5:53":   0, // this node
		"127.0.0.1:4000 > 127.0.0.1:30053 < 10.244.2.5:53":     0,
		"10.244.1.2:4000 > 192.168.1.10:30053 < 10.244.1.5:53": EndpointGone,
	})
}

func TestAnybodyMayBeAPodWherePodsAreToldByInterface(t *testing.T) {
	byInterface := settings
	byInterface.Detect = plan.Detect{Mode: plan.DetectBridge, Interface: "br0"}
	s := newState(t, byInterface)
	svc := service("dns", "@10.244.2.5:53", "10.244.1.5:53")
	svc.ExternalLocal = true
	s.put(svc)
	s.want("by interface", map[string]Orphan{
		"192.0.2.9:4000 > 203.0.113.1:53 < 10.244.2.5:53": 0,
		"192.0.2.9:4000 > 203.0.113.1:53 < 10.244.2.6:53": EndpointGone,
	})
}

func TestFlowStaysWithATerminatingEndpointThatServes(t *testing.T) {
	s := newState(t, settings)
	svc := service("dns", "10.244.1.5:53", "10.244.1.6:53")
	s.put(svc)
	dying := service("dns", "10.244.1.5:53", "10.244.1.6:53")
	eps := dying.Endpoints[dns]
	eps[0].Ready, eps[0].Terminating = false, true
	if s.put(dying) {
		t.Error("an endpoint that terminates matters to flows")
	}
	s.want("terminating", map[string]Orphan{"10.244.1.2:4000 > 10.96.0.10:53 < 10.244.1.5:53": 0})
}

func TestFrontendsThatAreGoneAreRememberedUntilForgotten(t *testing.T) {
	s := newState(t, settings)
	s.put(service("dns", "10.244.1.5:53"))
	if !s.remove(service("dns")) {
		t.Error("a service that is gone matters to no flow")
	}
	generation := s.generation
	gone := map[string]Orphan{
		"10.244.1.2:4000 > 10.96.0.10:53 < 10.244.1.5:53":     ServiceGone,
		"192.0.2.9:4000 > 192.168.1.10:30053 < 10.244.1.5:53": ServiceGone,
		"10.244.1.2:4000 > 10.96.0.10:53 < 10.96.0.10:53":     0, // it is not ours any more
	}
	s.want("gone", gone)
	s.forget(generation - 1)
	s.want("after an older pass", gone)
	s.forget(generation)
	s.want("after a pass", map[string]Orphan{"10.244.1.2:4000 > 10.96.0.10:53 < 10.244.1.5:53": 0})
	if len(s.targets) != 0 || len(s.held) != 0 {
		t.Errorf("%d targets and %d owners are left", len(s.targets), len(s.held))
	}
}

func TestServiceThatComesBackIsNoTombstone(t *testing.T) {
	s := newState(t, settings)
	s.put(service("dns", "10.244.1.5:53"))
	s.remove(service("dns"))
	if !s.put(service("dns", "10.244.1.5:53")) {
		t.Error("a service that comes back matters to no flow")
	}
	s.forget(s.generation)
	s.want("back", map[string]Orphan{
		"10.244.1.2:4000 > 10.96.0.10:53 < 10.244.1.5:53": 0,
		"10.244.1.2:4000 > 10.96.0.10:53 < 10.96.0.10:53": NotTranslated,
	})
}

func TestContestedFrontendBelongsToItsWinner(t *testing.T) {
	s := newState(t, settings)
	loser, winner := service("b", "10.244.1.5:53"), service("a", "10.244.1.6:53")
	winner.ClusterIPs = addrs("10.96.0.11")
	s.put(loser)
	s.put(winner)
	contested := "192.0.2.9:4000 > 203.0.113.1:53 < 10.244.1.5:53"
	s.want("lost", map[string]Orphan{contested: EndpointGone})
	s.remove(winner)
	s.want("won back", map[string]Orphan{contested: 0, "10.244.1.2:4 > 10.96.0.11:53 < 10.244.1.6:53": ServiceGone})
}

// TestServiceOfWhichNothingWasToldMayLoseItsFrontend: a service that was set
// aside keeps what it held, which another one gets and gives up meanwhile.
func TestServiceOfWhichNothingWasToldMayLoseItsFrontend(t *testing.T) {
	s := newState(t, settings)
	aside, other := service("b", "10.244.1.5:53"), service("a", "10.244.1.6:53")
	other.ClusterIPs = addrs("10.96.0.11")
	s.put(aside)
	others := newState(t, settings)
	others.set(nil)
	others.index = s.index
	others.put(other)
	others.remove(other)
	s.forget(s.generation)
	s.remove(aside)
	s.want("gone as well", map[string]Orphan{"10.244.1.2:4000 > 10.96.0.10:53 < 10.244.1.5:53": ServiceGone})
	s.forget(s.generation)
	if len(s.targets) != 0 || len(s.held) != 0 {
		t.Errorf("%d targets and %d owners are left", len(s.targets), len(s.held))
	}
}

// TestClusterIPStaysOneIfItIsAnExternalIPToo: the rules for it come first.
func TestClusterIPStaysOneIfItIsAnExternalIPToo(t *testing.T) {
	s := newState(t, settings)
	svc := service("dns", "10.244.1.5:53", "@10.244.2.5:53")
	svc.ExternalIPs, svc.LoadBalancerIPs = svc.ClusterIPs, svc.ClusterIPs
	svc.ExternalLocal = true
	s.put(svc)
	s.want("cluster IP", map[string]Orphan{
		"192.0.2.9:4000 > 10.96.0.10:53 < 10.244.2.5:53":      0,
		"192.0.2.9:4000 > 192.168.1.10:30053 < 10.244.2.5:53": EndpointElsewhere,
	})
}

func TestFrontendThatIsGoneHidesNoNodePort(t *testing.T) {
	s := newState(t, settings)
	external, public := service("a", "10.244.1.5:53"), service("b", "10.244.1.6:53")
	external.ExternalIPs = addrs("192.168.1.10")
	external.Ports[0].Number, external.Ports[0].NodePort = 30053, 0
	public.ClusterIPs = addrs("10.96.0.11")
	s.put(external)
	s.put(public)
	old, now := "192.0.2.9:4 > 192.168.1.10:30053 < 10.244.1.5:53", "192.0.2.9:5 > 192.168.1.10:30053 < 10.244.1.6:53"
	s.want("external IP", map[string]Orphan{old: 0, now: EndpointGone})
	s.remove(external)
	s.want("node port", map[string]Orphan{old: EndpointGone, now: 0})
}

func TestConnectionsStayWhileTheirEndpointExists(t *testing.T) {
	for _, p := range []model.Protocol{model.TCP, model.SCTP} {
		s := newState(t, settings, model.UDP, p)
		key := model.PortKey{Port: "dns", Protocol: p}
		with := func(eps ...model.Endpoint) *model.Service {
			svc := service("dns")
			svc.Ports[0].PortKey = key
			svc.Endpoints = map[model.PortKey][]model.Endpoint{key: eps}
			return svc
		}
		ep := model.Endpoint{Addr: netip.MustParseAddrPort("10.244.1.5:53"), Node: "there", Terminating: true}
		f := parse(t, "192.0.2.9:4000 > 203.0.113.1:53 < 10.244.1.5:53")
		direct := parse(t, "192.0.2.9:4000 > 203.0.113.1:53 < 203.0.113.1:53")
		f.Protocol, direct.Protocol = p, p
		s.put(with(ep))
		if _, stale := s.stale(f); stale {
			t.Errorf("%s: stale while its endpoint terminates", p)
		}
		s.put(with())
		if _, stale := s.stale(f); !stale {
			t.Errorf("%s: stays without its endpoint", p)
		}
		if _, stale := s.stale(direct); stale {
			t.Errorf("%s: stale though it is not translated", p)
		}
	}
}

func TestProtocolsThatWereNotAskedForMatterToNoFlow(t *testing.T) {
	s := newState(t, settings)
	svc := service("web")
	svc.Ports[0].Protocol = model.TCP
	if s.put(svc) || len(s.targets) != 0 {
		t.Errorf("%d targets", len(s.targets))
	}
}

func TestWhatMatters(t *testing.T) {
	two := func() *model.Service { return service("dns", "10.244.1.5:53", "10.244.1.6:53") }
	for name, c := range map[string]struct {
		change func(*model.Service)
		want   bool
	}{
		"nothing":             {func(*model.Service) {}, false},
		"one more endpoint":   {func(s *model.Service) { *s = *service("dns", "10.244.1.5:53", "10.244.1.6:53", "10.244.1.7:53") }, false},
		"one less endpoint":   {func(s *model.Service) { *s = *service("dns", "10.244.1.5:53") }, true},
		"affinity":            {func(s *model.Service) { s.Affinity = 1e9 }, false},
		"one more address":    {func(s *model.Service) { s.ExternalIPs = addrs("198.51.100.1", "198.51.100.2") }, true},
		"one less address":    {func(s *model.Service) { s.ExternalIPs = nil }, true},
		"another node port":   {func(s *model.Service) { s.Ports[0].NodePort++ }, true},
		"policy, all local":   {func(s *model.Service) { s.ExternalLocal = true }, false},
		"endpoint that fails": {func(s *model.Service) { s.Endpoints[dns][0] = model.Endpoint{Addr: s.Endpoints[dns][0].Addr} }, true},
	} {
		s := newState(t, settings)
		s.put(two())
		changed := two()
		c.change(changed)
		if got := s.put(changed); got != c.want {
			t.Errorf("%s: matters %v, want %v", name, got, c.want)
		}
	}
}

// TestIndexAgreesWithOneFromScratch changes services at random. After each
// change every flow is judged as by an index that knows the last state only;
// and if the change is said not to matter, no flow has become stale by it.
func TestIndexAgreesWithOneFromScratch(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		s := newState(t, settings, model.UDP, model.TCP)
		flows := randomFlows(rnd)
		before := s.verdicts(flows)
		for step := range 60 {
			mattered := s.set(randomServices(rnd))
			after := s.verdicts(flows)
			if !mattered {
				for i := range flows {
					if after[i] != 0 && before[i] == 0 {
						t.Fatalf("seed %d, step %d: %s is stale (%s) by a change that does not matter", seed, step, flows[i], after[i])
					}
				}
			}
			if rnd.IntN(2) == 0 {
				before = after
				continue
			}
			s.forget(s.generation)
			fresh := newState(t, settings, model.UDP, model.TCP)
			fresh.services = s.services
			fresh.set(nil)
			before = s.verdicts(flows)
			for i, want := range fresh.verdicts(flows) {
				if before[i] != want {
					t.Fatalf("seed %d, step %d: %s: %s, from scratch %s", seed, step, flows[i], before[i], want)
				}
			}
			if len(s.targets) != len(fresh.targets) {
				t.Fatalf("seed %d, step %d: %d targets, from scratch %d", seed, step, len(s.targets), len(fresh.targets))
			}
		}
	}
}

func (s *state) verdicts(flows []*Flow) []Orphan {
	all := make([]Orphan, len(flows))
	for i, f := range flows {
		if o, stale := s.stale(f); stale {
			all[i] = o
		}
	}
	return all
}

// The few addresses that random services and flows share.
var (
	clusterIPs  = addrs("10.96.0.1", "10.96.0.2", "10.96.0.3", "10.96.0.4")
	externalIPs = addrs("198.51.100.1", "198.51.100.2", "10.96.0.1")
)

func pick[T any](rnd *rand.Rand, all []T) T { return all[rnd.IntN(len(all))] }

func randomEndpoint(rnd *rand.Rand) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 244, 1, byte(rnd.IntN(5))}), 53)
}

func randomServices(rnd *rand.Rand) map[model.Name]*model.Service {
	changes := map[model.Name]*model.Service{}
	for range rnd.IntN(3) {
		i := rnd.IntN(len(clusterIPs))
		name := model.Name{Namespace: "default", Name: fmt.Sprint("s", i)}
		changes[name] = nil
		if rnd.IntN(4) > 0 {
			changes[name] = randomService(rnd, name, clusterIPs[i])
		}
	}
	return changes
}

func randomService(rnd *rand.Rand, name model.Name, clusterIP netip.Addr) *model.Service {
	svc := &model.Service{
		Name: name, ClusterIPs: []netip.Addr{clusterIP},
		InternalLocal: rnd.IntN(4) == 0, ExternalLocal: rnd.IntN(3) == 0,
		Endpoints: map[model.PortKey][]model.Endpoint{},
	}
	if rnd.IntN(2) == 0 {
		svc.ExternalIPs = []netip.Addr{pick(rnd, externalIPs)}
	}
	for i, p := range []model.Protocol{model.UDP, model.TCP}[:1+rnd.IntN(2)] {
		key := model.PortKey{Port: p.String(), Protocol: p}
		svc.Ports = append(svc.Ports, model.Port{PortKey: key, Number: 53, NodePort: uint16(rnd.IntN(2) * (30000 + i))})
		for range rnd.IntN(4) {
			ep := model.Endpoint{Addr: randomEndpoint(rnd), Ready: rnd.IntN(3) > 0, Terminating: rnd.IntN(3) == 0, Node: pick(rnd, []string{"here", "there"})}
			ep.Serving = ep.Ready || rnd.IntN(2) == 0
			svc.Endpoints[key] = append(svc.Endpoints[key], ep)
		}
	}
	return svc
}

func randomFlows(rnd *rand.Rand) (flows []*Flow) {
	clients := addrs("10.244.1.9", "192.0.2.9", "192.168.1.10")
	to := append(append(addrs("192.168.1.10", "8.8.8.8"), clusterIPs...), externalIPs...)
	for range 500 {
		f := &Flow{Family: model.IPv4, Protocol: pick(rnd, []model.Protocol{model.UDP, model.TCP})}
		f.Original.Source = netip.AddrPortFrom(pick(rnd, clients), 4000)
		f.Original.Destination = netip.AddrPortFrom(pick(rnd, to), pick(rnd, []uint16{53, 30000, 30001}))
		f.Reply = Tuple{randomEndpoint(rnd), f.Original.Source}
		if rnd.IntN(4) == 0 {
			f.Reply.Source = f.Original.Destination
		}
		flows = append(flows, f)
	}
	return flows
}
