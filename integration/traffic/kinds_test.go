package traffic

import (
	"net/netip"
	"testing"

	"github.com/nlproxy/nlproxy/dataplane/plan"
)

// Four services, one of each kind, over the same endpoints.
func kinds() (cluster, node, balanced, external service) {
	two := at("pod-1", "remote-1")
	cluster = service{name: "cluster", number: 1, endpoints: two}
	node = service{name: "node", number: 2, kind: "NodePort", endpoints: two}
	balanced = service{name: "balanced", number: 3, kind: "LoadBalancer", endpoints: two}
	external = service{name: "external", number: 4, endpoints: two}
	external.spec = "externalIPs: [" + both(externalIP, external) + "]"
	return cluster, node, balanced, external
}

func TestEveryKindOfServiceAnswersEverybody(t *testing.T) {
	t.Parallel()
	t.Logf("tried over %v, those that this kernel has sockets for", networks())
	cluster, node, balanced, external := kinds()
	p := newProxy(t, settings())
	p.set(t, cluster, node, balanced, external)
	here := []string{"pod-1", "remote-1"}
	var rows []row
	for _, r := range []struct {
		to service
		by frontend
		// what pods, and what others, must see
		pods, others want
	}{
		{cluster, clusterIP, kept(here...), masqueraded(here...)},
		{node, clusterIP, kept(here...), masqueraded(here...)},
		{node, nodePort, masqueraded(here...), masqueraded(here...)},
		{balanced, clusterIP, kept(here...), masqueraded(here...)},
		{balanced, nodePort, masqueraded(here...), masqueraded(here...)},
		{balanced, ingress, masqueraded(here...), masqueraded(here...)},
		{external, clusterIP, kept(here...), masqueraded(here...)},
		{external, externalIP, masqueraded(here...), masqueraded(here...)},
	} {
		rows = append(rows,
			row{from: client, to: r.to, by: r.by, want: r.pods},
			row{from: "node", to: r.to, by: r.by, want: r.others},
			row{from: "outside", to: r.to, by: r.by, want: r.others})
	}
	p.check(t, rows)
}

func TestPodReachesItselfThroughItsService(t *testing.T) {
	t.Parallel()
	own := service{name: "own", number: 1, kind: "LoadBalancer", endpoints: at("pod-1")}
	p := newProxy(t, settings())
	p.set(t, own)
	p.check(t, []row{
		{from: "pod-1", to: own, by: clusterIP, want: masqueraded("pod-1")},
		{from: client, to: own, by: clusterIP, want: kept("pod-1")},
		{from: "pod-1", to: own, by: nodePort, want: masqueraded("pod-1")},
		{from: "pod-1", to: own, by: ingress, want: masqueraded("pod-1")},
	})
}

// TestSourceThatTheServerSees looks at each way of telling pods from others.
func TestSourceThatTheServerSees(t *testing.T) {
	t.Parallel()
	local := service{name: "local", number: 1, kind: "LoadBalancer",
		spec: "externalTrafficPolicy: Local, healthCheckNodePort: 31001", endpoints: at("pod-1", "remote-1")}
	wide := service{name: "wide", number: 2, kind: "LoadBalancer", endpoints: at("pod-1")}
	anywhere := []string{"pod-1", "remote-1"}

	detected := []row{
		{from: client, to: wide, by: clusterIP, want: kept("pod-1")},
		{from: "node", to: wide, by: clusterIP, want: masqueraded("pod-1")},
		{from: "outside", to: wide, by: clusterIP, want: masqueraded("pod-1")},
		{from: client, to: wide, by: ingress, want: masqueraded("pod-1")},
		{from: "outside", to: wide, by: nodePort, want: masqueraded("pod-1")},
		{from: client, to: local, by: ingress, want: kept(anywhere...)},
		{from: "node", to: local, by: ingress, want: masqueraded(anywhere...)},
		{from: "outside", to: local, by: ingress, want: kept("pod-1")},
		{from: "outside", to: local, by: nodePort, want: kept("pod-1")},
	}
	everything := []row{
		{from: client, to: wide, by: clusterIP, want: masqueraded("pod-1")},
		{from: "node", to: wide, by: clusterIP, want: masqueraded("pod-1")},
		{from: "outside", to: wide, by: clusterIP, want: masqueraded("pod-1")},
		{from: "outside", to: local, by: ingress, want: kept("pod-1")},
	}
	nothing := []row{
		{from: client, to: wide, by: clusterIP, want: kept("pod-1")},
		{from: "node", to: wide, by: clusterIP, want: kept("pod-1")},
		{from: "outside", to: wide, by: clusterIP, want: kept("pod-1")},
		{from: "pod-1", to: wide, by: clusterIP, want: masqueraded("pod-1")},
		{from: "outside", to: wide, by: ingress, want: masqueraded("pod-1")},
		// Pods are strangers here, who may use nothing but what is local.
		{from: client, to: local, by: ingress, want: kept("pod-1")},
		{from: "node", to: local, by: ingress, want: masqueraded(anywhere...)},
	}
	p := newProxy(t, settings())
	for _, c := range []struct {
		name   string
		change func(*plan.Options)
		rows   []row
	}{
		{"cluster CIDR", func(o *plan.Options) {}, detected},
		{"node CIDR", func(o *plan.Options) { o.Detect = plan.Detect{Mode: plan.DetectNodeCIDR} }, detected},
		{"interface prefix", func(o *plan.Options) {
			o.Detect = plan.Detect{Mode: plan.DetectInterfacePrefix, Interface: "veth-pod"}
		}, detected},
		{"cluster CIDR without pods in it", func(o *plan.Options) {
			o.Detect.ClusterCIDRs = []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16"), netip.MustParsePrefix("fd00:9::/32")}
		}, everything},
		{"masquerade all", func(o *plan.Options) { o.MasqueradeAll = true }, everything},
		{"no detection", func(o *plan.Options) { o.Detect = plan.Detect{} }, nothing},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.options.Plan = settings()
			c.change(&p.options.Plan)
			p.start(t)
			p.set(t, local, wide)
			p.check(t, c.rows)
		})
	}
}
