package plan

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

var (
	http = model.PortKey{Port: "http", Protocol: model.TCP}
	here = model.Node{
		Name: "here", Zone: "z1",
		Addresses: addrs("192.168.7.1", "fd00:7::1"),
		PodCIDRs:  prefixes("10.244.1.0/24", "fd00:244:1::/64"),
		Local:     addrs("127.0.0.1", "192.168.7.1", "192.168.8.1", "::1", "fd00:7::1"),
	}
)

func addrs(ss ...string) (as []netip.Addr) {
	for _, s := range ss {
		as = append(as, netip.MustParseAddr(s))
	}
	return as
}

func prefixes(ss ...string) (ps []netip.Prefix) {
	for _, s := range ss {
		ps = append(ps, netip.MustParsePrefix(s))
	}
	return ps
}

// endpoint reads "10.0.0.1:80 here ready", "... there dying", "... unready",
// with "zone=z" and "for=node" as hints.
func endpoint(s string) model.Endpoint {
	words := strings.Fields(s)
	ep := model.Endpoint{Addr: netip.MustParseAddrPort(words[0]), Node: words[1]}
	for _, w := range words[2:] {
		zone, isZone := strings.CutPrefix(w, "zone=")
		node, isNode := strings.CutPrefix(w, "for=")
		switch {
		case w == "ready":
			ep.Ready, ep.Serving = true, true
		case w == "dying":
			ep.Serving, ep.Terminating = true, true
		case w == "dead":
			ep.Terminating = true
		case isZone:
			ep.Zones = append(ep.Zones, zone)
		case isNode:
			ep.Nodes = append(ep.Nodes, node)
		}
	}
	return ep
}

// service is a Service with one port and the endpoints.
func service(name string, eps ...string) *model.Service {
	svc := &model.Service{
		Name:       model.Name{Namespace: "default", Name: name},
		Ports:      []model.Port{{PortKey: http, Number: 80}},
		ClusterIPs: addrs("10.96.0.1"),
		Endpoints:  map[model.PortKey][]model.Endpoint{},
	}
	for _, ep := range eps {
		svc.Endpoints[http] = append(svc.Endpoints[http], endpoint(ep))
	}
	return svc
}

func snapshot(node model.Node, svcs ...*model.Service) model.Snapshot {
	m := map[model.Name]*model.Service{}
	for _, s := range svcs {
		m[s.Name] = s
	}
	return model.Snapshot{Node: node, Services: model.Services{}.With(m)}
}

// one plans a single service and returns its port.
func one(t *testing.T, o Options, svc *model.Service) Port {
	t.Helper()
	ports := New(model.IPv4, o).Build(snapshot(here, svc)).Services[svc.Name].Ports
	if len(ports) != 1 {
		t.Fatalf("%d ports are planned, want 1", len(ports))
	}
	return ports[0]
}

func pool(eps []netip.AddrPort) string {
	var words []string
	for _, ep := range eps {
		words = append(words, ep.Addr().String())
	}
	return strings.Join(words, " ")
}

func TestPools(t *testing.T) {
	const both = true
	for name, tc := range map[string]struct {
		eps               string // separated by commas
		external          bool   // give it an external IP
		iLocal, eLocal    bool
		cluster, local    string
		internal, outside Verdict
	}{
		"none":                         {internal: Reject, outside: Reject},
		"not ready is none":            {eps: "10.0.0.1:80 here", internal: Reject, outside: Reject},
		"ready":                        {eps: "10.0.0.1:80 here ready,10.0.0.2:80 there ready", cluster: "10.0.0.1 10.0.0.2"},
		"ready hides dying":            {eps: "10.0.0.1:80 here dying,10.0.0.2:80 there ready", cluster: "10.0.0.2"},
		"dying is the last resort":     {eps: "10.0.0.1:80 here dying,10.0.0.2:80 there dead", cluster: "10.0.0.1"},
		"dead is none":                 {eps: "10.0.0.1:80 here dead", internal: Reject, outside: Reject},
		"internal local":               {eps: "10.0.0.1:80 here ready,10.0.0.2:80 there ready", iLocal: true, local: "10.0.0.1"},
		"internal local, none here":    {eps: "10.0.0.2:80 there ready", iLocal: true, internal: Drop},
		"internal local, none at all":  {iLocal: true, internal: Reject, outside: Reject},
		"internal local, public":       {eps: "10.0.0.1:80 here ready,10.0.0.2:80 there ready", iLocal: true, external: true, cluster: "10.0.0.1 10.0.0.2", local: "10.0.0.1"},
		"external local":               {eps: "10.0.0.1:80 here ready,10.0.0.2:80 there ready", eLocal: true, external: true, cluster: "10.0.0.1 10.0.0.2", local: "10.0.0.1"},
		"external local, not public":   {eps: "10.0.0.1:80 here ready", eLocal: true, cluster: "10.0.0.1"},
		"external local, none here":    {eps: "10.0.0.2:80 there ready", eLocal: true, external: true, cluster: "10.0.0.2", outside: Drop},
		"external local, dying here":   {eps: "10.0.0.1:80 here dying,10.0.0.2:80 there ready", eLocal: true, external: true, cluster: "10.0.0.2", local: "10.0.0.1"},
		"external local, dead here":    {eps: "10.0.0.1:80 here dead,10.0.0.2:80 there ready", eLocal: true, external: true, cluster: "10.0.0.2", outside: Drop},
		"zone hints":                   {eps: "10.0.0.1:80 here ready zone=z1,10.0.0.2:80 there ready zone=z2", cluster: "10.0.0.1"},
		"a hint is missing":            {eps: "10.0.0.1:80 here ready zone=z1,10.0.0.2:80 there ready", cluster: "10.0.0.1 10.0.0.2"},
		"no hint for this zone":        {eps: "10.0.0.1:80 here ready zone=z2,10.0.0.2:80 there ready zone=z2", cluster: "10.0.0.1 10.0.0.2"},
		"unready ones need no hint":    {eps: "10.0.0.1:80 here ready zone=z1,10.0.0.2:80 there,10.0.0.3:80 there ready zone=z2", cluster: "10.0.0.1"},
		"node hints go before zones":   {eps: "10.0.0.1:80 here ready zone=z1 for=here,10.0.0.2:80 there ready zone=z1 for=there", cluster: "10.0.0.1"},
		"no node hint for this node":   {eps: "10.0.0.1:80 there ready zone=z1 for=there,10.0.0.2:80 there ready zone=z2 for=there", cluster: "10.0.0.1"},
		"hints do not bind last":       {eps: "10.0.0.2:80 there dying zone=z2", cluster: "10.0.0.2"},
		"local pool ignores hints":     {eps: "10.0.0.1:80 here ready zone=z2,10.0.0.2:80 there ready zone=z1", eLocal: true, external: true, cluster: "10.0.0.2", local: "10.0.0.1"},
		"both local, one pool":         {eps: "10.0.0.1:80 here ready,10.0.0.2:80 there ready", iLocal: both, eLocal: both, local: "10.0.0.1"},
		"other family does not count":  {eps: "[fd00::1]:80 here ready", internal: Reject, outside: Reject},
		"same address, different port": {eps: "10.0.0.1:80 here ready,10.0.0.1:81 here ready", cluster: "10.0.0.1 10.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			svc := service("web", splitEndpoints(tc.eps)...)
			svc.InternalLocal, svc.ExternalLocal = tc.iLocal, tc.eLocal
			if tc.external {
				svc.ExternalIPs = addrs("203.0.113.1")
			}
			p := one(t, Options{}, svc)
			if got := pool(p.Cluster); got != tc.cluster {
				t.Errorf("cluster pool %q, want %q", got, tc.cluster)
			}
			if got := pool(p.Local); got != tc.local {
				t.Errorf("local pool %q, want %q", got, tc.local)
			}
			if p.Internal != tc.internal {
				t.Errorf("internal traffic: %v, want %v", p.Internal, tc.internal)
			}
			if tc.external || tc.internal == Reject {
				if p.External != tc.outside {
					t.Errorf("external traffic: %v, want %v", p.External, tc.outside)
				}
			}
		})
	}
}

func splitEndpoints(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func TestReachableHasEachEndpointOnce(t *testing.T) {
	svc := service("web", "10.0.0.1:80 here dying", "10.0.0.2:80 there ready", "10.0.0.3:80 there ready")
	svc.ExternalLocal, svc.ExternalIPs = true, addrs("203.0.113.1")
	p := one(t, Options{}, svc)
	if got := pool(p.Reachable()); got != "10.0.0.2 10.0.0.3 10.0.0.1" {
		t.Errorf("reachable are %q", got)
	}
	if got := pool(p.Cluster); got != "10.0.0.2 10.0.0.3" {
		t.Errorf("Reachable changed the cluster pool to %q", got)
	}
}

func TestFrontends(t *testing.T) {
	svc := service("web", "10.0.0.1:80 here ready")
	svc.ClusterIPs = addrs("10.96.0.1", "fd00:96::1")
	svc.ExternalIPs = addrs("203.0.113.1", "2001:db8::1", "203.0.113.1")
	svc.LoadBalancerIPs = addrs("2001:db8::2", "203.0.113.2")
	svc.Ports[0].NodePort = 30000
	show := func(f model.Family, o Options) (all []string) {
		for _, fr := range New(f, o).Build(snapshot(here, svc)).Services[svc.Name].Ports[0].Frontends {
			all = append(all, fr.Kind.String()+" "+netip.AddrPortFrom(fr.Addr, fr.Port).String())
		}
		return all
	}
	for name, tc := range map[string]struct {
		family model.Family
		opts   Options
		want   []string
	}{
		"IPv4": {model.IPv4, Options{}, []string{"cluster IP 10.96.0.1:80", "external IP 203.0.113.1:80", "load-balancer IP 203.0.113.2:80", "node port invalid AddrPort"}},
		"IPv6": {model.IPv6, Options{}, []string{"cluster IP [fd00:96::1]:80", "external IP [2001:db8::1]:80", "load-balancer IP [2001:db8::2]:80", "node port invalid AddrPort"}},
		"off":  {model.IPv4, Options{NoExternalIPs: true}, []string{"cluster IP 10.96.0.1:80", "load-balancer IP 203.0.113.2:80", "node port invalid AddrPort"}},
	} {
		if got := show(tc.family, tc.opts); !slices.Equal(got, tc.want) {
			t.Errorf("%s: frontends %q, want %q", name, got, tc.want)
		}
	}
}

func TestServiceWithoutClusterIPOfTheFamilyHasNoPorts(t *testing.T) {
	svc := service("web", "10.0.0.1:80 here ready")
	svc.ClusterIPs, svc.ExternalIPs = addrs("fd00:96::1"), addrs("203.0.113.1")
	if got := New(model.IPv4, Options{}).Build(snapshot(here, svc)).Services[svc.Name].Ports; got != nil {
		t.Errorf("planned %v", got)
	}
}

func TestSourceRanges(t *testing.T) {
	for name, tc := range map[string]struct {
		ranges []netip.Prefix
		want   []netip.Prefix
		vips   []netip.Addr
	}{
		"none":               {},
		"one":                {ranges: prefixes("198.51.100.7/24"), want: prefixes("198.51.100.0/24")},
		"node is in":         {ranges: prefixes("198.51.100.0/24", "192.168.0.0/16"), want: prefixes("198.51.100.0/24", "192.168.0.0/16"), vips: addrs("203.0.113.1", "203.0.113.2")},
		"everybody":          {ranges: prefixes("198.51.100.0/24", "0.0.0.0/0")},
		"of the other":       {ranges: prefixes("2001:db8::/32")},
		"mixed with another": {ranges: prefixes("2001:db8::/32", "198.51.100.0/24"), want: prefixes("198.51.100.0/24")},
		"other is everybody": {ranges: prefixes("::/0", "198.51.100.0/24"), want: prefixes("198.51.100.0/24")},
	} {
		t.Run(name, func(t *testing.T) {
			svc := service("web", "10.0.0.1:80 here ready")
			svc.LoadBalancerIPs = addrs("203.0.113.1", "203.0.113.2", "2001:db8::1")
			svc.SourceRanges = tc.ranges
			p := one(t, Options{}, svc)
			if !slices.Equal(p.Sources, tc.want) {
				t.Errorf("sources %v, want %v", p.Sources, tc.want)
			}
			if !slices.Equal(p.SourceVIPs, tc.vips) {
				t.Errorf("own addresses allowed %v, want %v", p.SourceVIPs, tc.vips)
			}
		})
	}
}

func TestMasqueradeAndDetection(t *testing.T) {
	cidr := Detect{Mode: DetectClusterCIDR, ClusterCIDRs: prefixes("fd00:244::/32", "10.244.0.0/16", "10.9.0.0/16")}
	for name, tc := range map[string]struct {
		opts Options
		masq Masquerade
		pods Local
	}{
		"none":            {},
		"all":             {Options{MasqueradeAll: true}, MasqueradeAll, Local{}},
		"cluster range":   {Options{Detect: cidr}, MasqueradeOutside, Local{Source: prefixes("10.244.0.0/16")[0]}},
		"all, with range": {Options{Detect: cidr, MasqueradeAll: true}, MasqueradeAll, Local{Source: prefixes("10.244.0.0/16")[0]}},
		"node range":      {Options{Detect: Detect{Mode: DetectNodeCIDR}}, MasqueradeOutside, Local{Source: prefixes("10.244.1.0/24")[0]}},
		"bridge":          {Options{Detect: Detect{Mode: DetectBridge, Interface: "cbr0"}}, MasqueradeOutside, Local{Interface: "cbr0"}},
		"prefix":          {Options{Detect: Detect{Mode: DetectInterfacePrefix, Interface: "cali"}}, MasqueradeOutside, Local{Interface: "cali", Prefix: true}},
		"wrong family":    {Options{Detect: Detect{Mode: DetectClusterCIDR, ClusterCIDRs: prefixes("fd00::/8")}}, MasqueradeNone, Local{}},
	} {
		p := one(t, tc.opts, service("web", "10.0.0.1:80 here ready"))
		if p.Masquerade != tc.masq || p.Pods != tc.pods {
			t.Errorf("%s: masquerade %v of %+v, want %v of %+v", name, p.Masquerade, p.Pods, tc.masq, tc.pods)
		}
	}
}

func TestNodePortScope(t *testing.T) {
	all4, all6 := NodePortScope{All: true, Except: prefixes("127.0.0.0/8")[0]}, NodePortScope{All: true, Except: prefixes("::1/128")[0]}
	for name, tc := range map[string]struct {
		ports  NodePorts
		family model.Family
		want   NodePortScope
		guard  bool
	}{
		"default":                  {NodePorts{}, model.IPv4, all4, false},
		"default IPv6":             {NodePorts{Localhost: true}, model.IPv6, all6, false},
		"localhost":                {NodePorts{Localhost: true}, model.IPv4, NodePortScope{All: true}, true},
		"a range":                  {NodePorts{Prefixes: prefixes("192.168.7.0/24"), Localhost: true}, model.IPv4, NodePortScope{Addrs: addrs("192.168.7.1")}, false},
		"a range of the other":     {NodePorts{Prefixes: prefixes("192.168.7.0/24")}, model.IPv6, all6, false},
		"two ranges":               {NodePorts{Prefixes: prefixes("192.168.8.0/24", "192.168.0.0/16")}, model.IPv4, NodePortScope{Addrs: addrs("192.168.7.1", "192.168.8.1")}, false},
		"loopback range":           {NodePorts{Prefixes: prefixes("127.0.0.0/8"), Localhost: true}, model.IPv4, NodePortScope{Addrs: addrs("127.0.0.1")}, true},
		"loopback range, switched": {NodePorts{Prefixes: prefixes("127.0.0.0/8")}, model.IPv4, NodePortScope{}, false},
		"wide range over loopback": {NodePorts{Prefixes: prefixes("0.0.0.0/1"), Localhost: true}, model.IPv4, NodePortScope{Addrs: addrs("127.0.0.1")}, true},
		"loopback IPv6":            {NodePorts{Prefixes: prefixes("::1/128"), Localhost: true}, model.IPv6, NodePortScope{}, false},
		"primary":                  {NodePorts{Primary: true, Localhost: true}, model.IPv4, NodePortScope{Addrs: addrs("192.168.7.1")}, false},
		"primary and a range":      {NodePorts{Primary: true, Prefixes: prefixes("192.168.8.0/24")}, model.IPv4, NodePortScope{Addrs: addrs("192.168.7.1", "192.168.8.1")}, false},
		"everything":               {NodePorts{Prefixes: prefixes("192.168.8.0/24", "0.0.0.0/0"), Localhost: true}, model.IPv4, NodePortScope{All: true}, true},
	} {
		f := New(tc.family, Options{NodePorts: tc.ports}).Build(snapshot(here)).Frame
		if !reflect.DeepEqual(f.NodePorts, tc.want) || f.GuardLocalnet != tc.guard {
			t.Errorf("%s: %+v guarded %v, want %+v guarded %v", name, f.NodePorts, f.GuardLocalnet, tc.want, tc.guard)
		}
	}
}

func TestAffinityIsHandedOn(t *testing.T) {
	svc := service("web", "10.0.0.1:80 here ready")
	svc.Affinity = 3 * time.Hour
	if got := one(t, Options{}, svc).Affinity; got != 3*time.Hour {
		t.Errorf("affinity %v", got)
	}
}

func TestOptionsThatHaveNoMeaning(t *testing.T) {
	for want, o := range map[string]Options{
		"MasqueradeBit: 32 is not between 0 and 31": {MasqueradeBit: 32},
		"Detect.Interface: empty":                   {Detect: Detect{Mode: DetectBridge}},
	} {
		if err := o.Validate(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := (Options{MasqueradeBit: 31}).Validate(); err != nil {
		t.Error(err)
	}
}
