package watch

import (
	"net/netip"
	"slices"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// nodeAt is the node n1 in a zone, with an address and a pod CIDR.
func nodeAt(address, cidr, zone string) *corev1.Node {
	n := ranged(node("n1", address), cidr)
	n.Labels = map[string]string{corev1.LabelTopologyZone: zone, corev1.LabelHostname: "n1"}
	return n
}

// TestANodeIsFollowedWhateverHappens changes a node, and shows that its facts are
// all old or all new at any time, and new in the end.
func TestANodeIsFollowedWhateverHappens(t *testing.T) {
	first, last := nodeAt("192.168.7.1", "10.244.1.0/24", "a"), nodeAt("192.168.7.9", "10.244.9.0/24", "b")
	change := func(s *apiServer) { s.put("nodes", last) }
	renew := func(s *apiServer) { s.drop("nodes", "n1"); s.put("nodes", node("n1")); s.put("nodes", last) }
	for name, happens := range map[string]func(*apiServer){
		"it changes":                   change,
		"it is made anew":              renew,
		"it changes twice":             func(s *apiServer) { s.put("nodes", first.DeepCopy()); change(s) },
		"it changes and the watch end": func(s *apiServer) { s.disconnect(); change(s); s.disconnect() },
		"the version is gone": func(s *apiServer) {
			change(s)
			s.forget()
			s.disconnect()
		},
		"it is made anew while the server is away": func(s *apiServer) {
			s.leave(true)
			renew(s)
			s.forget()
			s.leave(false)
		},
		"the server comes back before it does": func(s *apiServer) {
			s.leave(true)
			s.drop("nodes", "n1")
			s.forget()
			s.leave(false)
			change(s)
		},
		"the server knows nobody for a while": func(s *apiServer) {
			s.estrange(true)
			renew(s)
			s.estrange(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer(t)
			server.put("nodes", first.DeepCopy())
			r := follow(t, server, Options{NodeName: "n1", NeedPodCIDRs: true})
			if err := r.Ready(r.ctx); err != nil {
				t.Fatal(err)
			}
			happens(server)
			r.until("the node as it is now", func(s model.Snapshot) bool {
				old := equalNode(s.Node, "192.168.7.1", "10.244.1.0/24", "a")
				now := equalNode(s.Node, "192.168.7.9", "10.244.9.0/24", "b")
				unzoned := equalNode(s.Node, "192.168.7.1", "10.244.1.0/24", "") // made anew, and not complete yet
				if !old && !now && !unzoned {
					t.Errorf("node is %+v", s.Node)
				}
				return now
			})
			if err := r.NodeErr(); err != nil || !r.Eligible() {
				t.Errorf("error is %v, eligible is %v", err, r.Eligible())
			}
		})
	}
}

func equalNode(n model.Node, address, cidr, zone string) bool {
	return n.Equal(model.Node{
		Name: "n1", Zone: zone,
		Addresses: addrs(address), PodCIDRs: prefixes(cidr),
	})
}

// TestANodeThatSaysNothingNewIsNoNews is of the status that a kubelet updates
// again and again, and of labels that no rule depends on.
func TestANodeThatSaysNothingNewIsNoNews(t *testing.T) {
	s, f := nodeSource(Options{})
	must(t, f.Replace([]any{nodeAt("192.168.7.1", "10.244.1.0/24", "a")}, "1"))
	<-s.Changed()
	for what, change := range map[string]func(*corev1.Node){
		"a heartbeat": func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		},
		"a region":          func(n *corev1.Node) { n.Labels[corev1.LabelTopologyRegion] = "r" },
		"another host name": func(n *corev1.Node) { n.Labels[corev1.LabelHostname] = "n1.example.com" },
		"a taint":           func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: taintToBeDeleted}} },
		"a second address": func(n *corev1.Node) {
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "192.168.7.2"})
		},
	} {
		n := nodeAt("192.168.7.1", "10.244.1.0/24", "a")
		change(n)
		must(t, f.Update(n))
		select {
		case <-s.Changed():
			t.Errorf("%s is taken for a change of rules", what)
		default:
		}
	}
}

func TestAnotherZoneAloneIsNews(t *testing.T) {
	s, f := nodeSource(Options{})
	must(t, f.Replace([]any{nodeAt("192.168.7.1", "10.244.1.0/24", "a")}, "1"))
	<-s.Changed()
	must(t, f.Update(nodeAt("192.168.7.1", "10.244.1.0/24", "b")))
	<-s.Changed()
	if got := s.Node().Zone; got != "b" {
		t.Errorf("zone is %q", got)
	}
	if got, _ := s.Snapshot(); got.Node.Zone != "b" || got.Changed != nil {
		t.Errorf("zone is %q, and %v have changed in the first snapshot", got.Node.Zone, got.Changed)
	}
}

// TestTheInterfacesAreNoAddressesOfANode shows that a host's own addresses come
// and go without a word of its Node object's.
func TestTheInterfacesAreNoAddressesOfANode(t *testing.T) {
	s, f := nodeSource(Options{})
	must(t, f.Replace([]any{node("n1", "192.168.7.1")}, "1"))
	for _, local := range [][]netip.Addr{addrs("127.0.0.1", "192.168.7.1"), addrs("127.0.0.1"), nil} {
		s.SetLocal(local)
		got, _ := s.Snapshot()
		if !slices.Equal(got.Node.Addresses, addrs("192.168.7.1")) || !slices.Equal(got.Node.Local, local) {
			t.Errorf("node is %+v", got.Node)
		}
	}
}

func TestADeletedNodeIsToldOfOnce(t *testing.T) {
	server := newAPIServer(t)
	server.put("nodes", node("n1", "192.168.7.1"))
	r := follow(t, server, Options{NodeName: "n1"})
	if err := r.Ready(r.ctx); err != nil {
		t.Fatal(err)
	}
	server.drop("nodes", "n1")
	r.told("node n1: does not exist")
	server.leave(true)
	server.forget()
	server.leave(false)
	server.put("services", webService())
	r.until("a service", has("web"))
	server.put("nodes", node("n1", "192.168.7.9"))
	r.until("the node", func(s model.Snapshot) bool { return slices.Equal(s.Node.Addresses, addrs("192.168.7.9")) })
	told := r.logs.FilterMessageSnippet("node n1: does not exist").FilterLevelExact(zap.WarnLevel)
	if told.Len() != 1 {
		t.Errorf("told %d times, want once: %v", told.Len(), r.logs.All())
	}
}
