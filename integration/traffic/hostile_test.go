package traffic

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/watch"
)

// A hostile is what nobody should write, as documents of YAML.
type hostile struct {
	name, objects string
	// field is what must be said to be wrong; empty if nothing is.
	field string
}

// evil is a Service; empty strings stand for what is good.
func evil(ip, ports, spec, ingress string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: evil, namespace: default}
spec: {type: LoadBalancer, clusterIP: %[1]s, clusterIPs: [%[1]s], ports: [%[2]s], %[3]s}
status: {loadBalancer: {ingress: [%[4]s]}}
`, cmp.Or(ip, "10.96.7.7"), cmp.Or(ports, "{port: 80}"), spec, ingress)
}

// behind is an EndpointSlice of a service.
func behind(service, kind, ports, endpoints string) string {
	return fmt.Sprintf(`---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-1, namespace: default, labels: {kubernetes.io/service-name: %[1]s}}
addressType: %[2]s
ports: [%[3]s]
endpoints: [%[4]s]
`, service, kind, ports, endpoints)
}

func hostiles() []hostile {
	good := evil("", "", "", "")
	one := `{addresses: ["10.244.1.2"]}`
	return []hostile{
		{"cluster IP that is none", evil("10.96.0.999", "", "", ""), "spec.clusterIPs[0]"},
		{"external IP that is none", evil("", "", `externalIPs: ["no address", 192.0.2.1]`, ""), "spec.externalIPs[0]"},
		{"ingress that is none", evil("", "", "", `{ip: 203.0.113.300}, {ip: 203.0.113.77}`), "ingress[0].ip"},
		{"range that is none", evil("", "", `loadBalancerSourceRanges: [10.0.0.0/99]`, `{ip: 203.0.113.77}`), "loadBalancerSourceRanges[0]"},
		{"port 0", evil("", "{port: 0}", "", ""), "spec.ports[0].port"},
		{"port 70000", evil("", "{port: 70000}", "", ""), "spec.ports[0].port"},
		{"node port 70000", evil("", "{port: 80, nodePort: 70000}", "", ""), "spec.ports[0].nodePort"},
		{"protocol that is none", evil("", "{port: 80, protocol: ICMP}", "", ""), "spec.ports[0].protocol"},
		{"affinity without end", evil("", "", sticky(2000000000), ""), "timeoutSeconds"},
		{"endpoint that is none", good + behind("evil", "IPv4", "{port: 8080}", `{addresses: ["10.244.1.2000"]}`), "endpoints[0].addresses[0]"},
		{"endpoint of the other family", good + behind("evil", "IPv4", "{port: 8080}", `{addresses: ["fd00::1"]}`), "endpoints[0].addresses[0]"},
		{"endpoint without address", good + behind("evil", "IPv4", "{port: 8080}", `{addresses: []}`), "endpoints[0].addresses"},
		{"endpoint port 0", good + behind("evil", "IPv4", "{port: 0}", one), "ports[0].port"},
		{"endpoint port 70000", good + behind("evil", "IPv4", "{port: 70000}", one), "ports[0].port"},
		{"slice of names", good + behind("evil", "FQDN", "{port: 8080}", `{addresses: ["example.com"]}`), ""},
		{"slice without a service", behind("nobody", "IPv4", "{port: 8080}", one), ""},
		{"address twice", evil("", "", `externalIPs: [192.0.2.1, 192.0.2.1, 203.0.113.77]`, `{ip: 203.0.113.77}, {ip: 203.0.113.77}, {ip: 192.0.2.1}`) +
			behind("evil", "IPv4", "{port: 8080}", one+", "+one), ""},
		{"address of somebody else", evil("10.96.0.1", "", `externalIPs: [10.96.0.2]`, `{ip: 192.168.7.1}`) +
			behind("evil", "IPv4", "{port: 8080}", `{addresses: ["10.244.2.3"]}`), ""},
	}
}

// TestHostileObjectsCostNobodyElse has each of them beside two good services,
// as manifests and as objects of a server that let them pass.
func TestHostileObjectsCostNobodyElse(t *testing.T) {
	t.Parallel()
	// Their names come first, so that nobody takes an address from them.
	good := []service{
		{name: "a", number: 1, endpoints: at("pod-1")},
		{name: "b", number: 2, kind: "NodePort", endpoints: at("pod-1")},
	}
	p := newProxy(t, settings())
	for _, h := range hostiles() {
		for source, sync := range map[string]func(testing.TB, string) error{"manifests": p.sync, "server": p.syncServed} {
			t.Run(h.name+" in "+source, func(t *testing.T) {
				if err := sync(t, manifests(good...)+h.objects); err != nil {
					t.Fatal(err)
				}
				p.checkProblems(t, h.field)
				if len(p.report.Aside) > 0 {
					t.Errorf("set aside %v", p.report.Aside)
				}
				p.check(t, servedBy("pod-1", good))
				p.check(t, []row{{from: "outside", to: good[1], by: nodePort, want: masqueraded("pod-1")}})
			})
		}
	}
}

// checkProblems looks for one about a field, or for none at all.
func (p *proxy) checkProblems(t *testing.T, field string) {
	t.Helper()
	if field == "" {
		if len(p.problems) > 0 {
			t.Errorf("problems %v, want none", p.problems)
		}
		return
	}
	for _, wrong := range p.problems {
		if strings.Contains(wrong.Field, field) && strings.Contains(wrong.Object, "default/evil") && wrong.Message != "" {
			return
		}
	}
	t.Errorf("problems %v, want one about %s", p.problems, field)
}

// syncServed is sync of what an API server serves, which is neither defaulted
// nor validated once more.
func (p *proxy) syncServed(t testing.TB, objects string) error {
	t.Helper()
	var list []runtime.Object
	for _, text := range strings.Split(objects, "---\n") {
		var kind runtime.TypeMeta
		if err := yaml.Unmarshal([]byte(text), &kind); err != nil {
			t.Fatal(err)
		}
		obj := map[string]runtime.Object{
			"Node": &corev1.Node{}, "Service": &corev1.Service{}, "EndpointSlice": &discoveryv1.EndpointSlice{},
		}[kind.Kind]
		if obj == nil {
			continue
		}
		if err := yaml.Unmarshal([]byte(text), obj); err != nil {
			t.Fatal(err)
		}
		list = append(list, obj)
	}
	s, problems := watch.FromObjects(watch.Options{NodeName: "node1"}, list...)
	return p.apply(t, s, problems)
}

func TestLongestNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 62) + "1"
	s := service{name: "longest", number: 1, kind: "LoadBalancer", spec: sticky(100), endpoints: at("pod-1")}
	s.spec += `, externalTrafficPolicy: Local, healthCheckNodePort: 31001, loadBalancerSourceRanges: ["0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1"]`
	objects := strings.NewReplacer(
		"namespace: default", "namespace: "+long,
		"service-name: longest", "service-name: "+long,
		"{name: longest, ", "{name: "+long+", ",
		"{name: tcp, ", "{name: tcp-"+strings.Repeat("t", 11)+", ",
		"{name: udp, ", "{name: udp-"+strings.Repeat("u", 11)+", ").Replace(manifests(s))
	p := newProxy(t, settings())
	if err := p.sync(t, objects); err != nil || len(p.problems)+len(p.report.Aside) > 0 {
		t.Fatalf("%v, problems %v, set aside %v", err, p.problems, p.report.Aside)
	}
	if p.services.Get(model.Name{Namespace: long, Name: long}) == nil {
		t.Fatal("the service is not there")
	}
	p.check(t, []row{
		{from: client, to: s, by: clusterIP, want: kept("pod-1")},
		{from: "outside", to: s, by: ingress, want: kept("pod-1")},
		{from: "outside", to: s, by: nodePort, want: kept("pod-1")},
	})
	for _, save := range []string{"iptables-nft-save", "ip6tables-nft-save"} {
		if text := p.run(t, "", save); !strings.Contains(text, long+"/"+long+":tcp-ttttttttttt loadbalancer IP") {
			t.Errorf("%s: the name of the port is in no comment", save)
		}
	}
}

// TestServiceWith5000Endpoints says how long one port of such a service takes.
func TestServiceWith5000Endpoints(t *testing.T) {
	t.Parallel()
	const endpoints = 5000
	good := service{name: "good", number: 1, endpoints: at("pod-1")}
	objects := manifests(good) + evil("", "{port: 80, nodePort: 30002}", sticky(10800), "")
	// A slice holds at most a thousand.
	for first := 0; first < endpoints; first += 1000 {
		var list strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&list, "{addresses: [%q]}, ", addressOf(fmt.Sprintf("absent-%d", first+i), false))
		}
		part := behind("evil", "IPv4", "{port: 8080}", list.String())
		objects += strings.Replace(part, "name: evil-1", fmt.Sprintf("name: evil-%d", first), 1)
	}
	p := newProxy(t, settings())
	for _, what := range []string{"first", "after a restart"} {
		start := time.Now()
		if err := p.sync(t, objects); err != nil || len(p.problems)+len(p.report.Aside) > 0 {
			t.Fatalf("%v, problems %v, set aside %v", err, p.problems, p.report.Aside)
		}
		t.Logf("%s: %s, of which %s in the dataplane; %d operations, %d bytes in %d transactions", what,
			time.Since(start), p.report.Duration, p.report.Operations, p.report.Bytes, p.report.Transactions)
		p.check(t, servedBy("pod-1", []service{good}))
		p.start(t)
	}
	if p.report.Operations != 0 {
		t.Errorf("%d operations after a restart, want none", p.report.Operations)
	}
	longest := 0
	for _, c := range p.chains(t) {
		longest = max(longest, len(c.Rules))
	}
	// One to masquerade, and for each endpoint one for its clients, one to spread.
	if want := 1 + 2*endpoints; longest != want {
		t.Errorf("the longest chain has %d rules, want %d", longest, want)
	}
}
