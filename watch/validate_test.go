package watch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// readOne reads manifests and returns what they make and what is wrong.
func readOne(t *testing.T, text string) (model.Snapshot, []string) {
	t.Helper()
	s, problems, err := Read("m.yaml", strings.NewReader(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s, texts(problems)
}

// service returns the manifest of a Service with these lines in its spec.
func service(spec ...string) string {
	return "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec:\n  " + strings.Join(spec, "\n  ")
}

const (
	onePort = "ports: [{port: 80}]"
	oneIP   = "clusterIP: 10.96.0.10"
)

func TestManifestsGetTheServersDefaults(t *testing.T) {
	for name, test := range map[string]struct {
		manifest string
		want     *model.Service
	}{
		"the least": {
			service(oneIP, onePort),
			webFacts(func(s *model.Service) { s.Ports[0].Port = "" }),
		},
		"cluster IPs without the first": {
			service("clusterIPs: [10.96.0.10]", onePort),
			webFacts(func(s *model.Service) { s.Ports[0].Port = "" }),
		},
		"families from the addresses": {
			service("clusterIPs: ['fd00:96::10', 10.96.0.10]", "ipFamilyPolicy: PreferDualStack", onePort),
			webFacts(func(s *model.Service) {
				s.Ports[0].Port = ""
				s.ClusterIPs = addrs("fd00:96::10", "10.96.0.10")
			}),
		},
		"affinity lasts three hours": {
			service(oneIP, onePort, "sessionAffinity: ClientIP"),
			webFacts(func(s *model.Service) { s.Ports[0].Port = ""; s.Affinity = 10800e9 }),
		},
		"cluster policies": {
			service(oneIP, "type: NodePort", "ports: [{port: 80, nodePort: 30080}]"),
			webFacts(func(s *model.Service) { s.Ports[0].Port = ""; s.Ports[0].NodePort = 30080 }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, problems := readOne(t, test.manifest)
			if diff := cmp.Diff(test.want, s.Services.Get(test.want.Name), compareFacts); diff != "" {
				t.Errorf("service (-want +got):\n%s", diff)
			}
			if problems != nil {
				t.Errorf("problems %v", problems)
			}
		})
	}
}

func TestSlicesGetTheServersDefaults(t *testing.T) {
	s, problems := readOne(t, service(oneIP, onePort)+`
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.244.1.5]}]
`)
	got := s.Services.Get(webFacts().Name).Endpoints
	want := map[model.PortKey][]model.Endpoint{{Protocol: model.TCP}: {endpoint("10.244.1.5:8080")}}
	if diff := cmp.Diff(want, got, compareFacts); diff != "" || problems != nil {
		t.Errorf("problems %v, endpoints (-want +got):\n%s", problems, diff)
	}
}

func TestServicesAreRefusedAsByTheServer(t *testing.T) {
	long := strings.Repeat("a", 64)
	for name, test := range map[string]struct{ manifest, field string }{
		"no name":                  {strings.Replace(service(oneIP, onePort), "web", "''", 1), "metadata.name"},
		"name with a dot":          {strings.Replace(service(oneIP, onePort), "web", "we.b", 1), "metadata.name"},
		"long name":                {strings.Replace(service(oneIP, onePort), "web", long, 1), "metadata.name"},
		"bad namespace":            {strings.Replace(service(oneIP, onePort), "web", "web, namespace: A", 1), "metadata.namespace"},
		"no ports":                 {service(oneIP), "spec.ports"},
		"two ports, one nameless":  {service(oneIP, "ports: [{port: 80}, {name: b, port: 81}]"), "spec.ports[0].name"},
		"two ports of one name":    {service(oneIP, "ports: [{name: a, port: 80}, {name: a, port: 81}]"), "spec.ports[1].name"},
		"two ports of one number":  {service(oneIP, "ports: [{name: a, port: 80}, {name: b, port: 80}]"), "spec.ports[1].port"},
		"two ports, one node port": {service(oneIP, "type: NodePort", "ports: [{name: a, port: 80, nodePort: 30000}, {name: b, port: 81, nodePort: 30000}]"), "spec.ports[1].nodePort"},
		"bad port name":            {service(oneIP, "ports: [{name: A_, port: 80}]"), "spec.ports[0].name"},
		"port zero":                {service(oneIP, "ports: [{port: 0}]"), "spec.ports[0].port"},
		"port too big":             {service(oneIP, "ports: [{port: 70000}]"), "spec.ports[0].port"},
		"target port too big":      {service(oneIP, "ports: [{port: 80, targetPort: 70000}]"), "spec.ports[0].targetPort"},
		"target port name":         {service(oneIP, "ports: [{port: 80, targetPort: a-name-that-is-too-long}]"), "spec.ports[0].targetPort"},
		"node port too big":        {service(oneIP, "type: NodePort", "ports: [{port: 80, nodePort: 70000}]"), "spec.ports[0].nodePort"},
		"node port of a ClusterIP": {service(oneIP, "ports: [{port: 80, nodePort: 30000}]"), "spec.ports[0].nodePort"},
		"protocol":                 {service(oneIP, "ports: [{port: 80, protocol: ICMP}]"), "spec.ports[0].protocol"},
		"type":                     {service(oneIP, onePort, "type: Magic"), "spec.type"},
		"no cluster IP":            {service(onePort), "spec.clusterIPs"},
		"cluster IP is text":       {service("clusterIP: here", onePort), "spec.clusterIPs[0]"},
		"cluster IP with zeros":    {service("clusterIP: 10.096.0.10", onePort), "spec.clusterIPs[0]"},
		"cluster IPs disagree":     {service(oneIP, "clusterIPs: [10.96.0.11]", onePort), "spec.clusterIPs"},
		"two IPs, one stack":       {service("clusterIPs: [10.96.0.10, 'fd00::1']", onePort), "spec.ipFamilyPolicy"},
		"two IPs, one family":      {service("clusterIPs: [10.96.0.10, 10.96.0.11]", "ipFamilyPolicy: RequireDualStack", onePort), "spec.ipFamilies[1]"},
		"IP of the wrong family":   {service(oneIP, "ipFamilies: [IPv6]", onePort), "spec.clusterIPs[0]"},
		"family without an IP":     {service(oneIP, "ipFamilyPolicy: RequireDualStack", "ipFamilies: [IPv4, IPv6]", onePort), "spec.clusterIPs[1]"},
		"unknown family":           {service(oneIP, "ipFamilies: [IPv5]", onePort), "spec.ipFamilies[0]"},
		"None and an address":      {service("clusterIPs: [None, 10.96.0.10]", onePort), "spec.clusterIPs"},
		"None for node ports":      {service("clusterIP: None", "type: NodePort", onePort), "spec.clusterIPs[0]"},
		"IP of an external name":   {service(oneIP, "type: ExternalName", "externalName: a.example"), "spec.clusterIPs"},
		"affinity":                 {service(oneIP, onePort, "sessionAffinity: Cookie"), "spec.sessionAffinity"},
		"affinity timeout":         {service(oneIP, onePort, "sessionAffinity: ClientIP", "sessionAffinityConfig: {clientIP: {timeoutSeconds: 86401}}"), "spec.sessionAffinityConfig.clientIP.timeoutSeconds"},
		"loopback external IP":     {service(oneIP, onePort, "externalIPs: [127.0.0.1]"), "spec.externalIPs[0]"},
		"blank external IP":        {service(oneIP, onePort, "externalIPs: ['']"), "spec.externalIPs[0]"},
		"external policy":          {service(oneIP, "type: NodePort", onePort, "externalTrafficPolicy: Near"), "spec.externalTrafficPolicy"},
		"external policy inside":   {service(oneIP, onePort, "externalTrafficPolicy: Local"), "spec.externalTrafficPolicy"},
		"internal policy":          {service(oneIP, onePort, "internalTrafficPolicy: Near"), "spec.internalTrafficPolicy"},
		"health check port":        {service(oneIP, onePort, "healthCheckNodePort: 32000"), "spec.healthCheckNodePort"},
		"health check port range":  {service(oneIP, onePort, "type: LoadBalancer", "externalTrafficPolicy: Local", "healthCheckNodePort: 70000"), "spec.healthCheckNodePort"},
		"source range":             {service(oneIP, onePort, "type: LoadBalancer", "loadBalancerSourceRanges: [10.0.0.1/8]"), "spec.loadBalancerSourceRanges[0]"},
		"source ranges inside":     {service(oneIP, onePort, "loadBalancerSourceRanges: [10.0.0.0/8]"), "spec.loadBalancerSourceRanges"},
		"ingress inside":           {service(oneIP, onePort) + "\nstatus: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}", "status.loadBalancer.ingress"},
		"ingress IP":               {service(oneIP, onePort, "type: LoadBalancer") + "\nstatus: {loadBalancer: {ingress: [{ip: x}]}}", "status.loadBalancer.ingress[0].ip"},
		"ingress mode":             {service(oneIP, onePort, "type: LoadBalancer") + "\nstatus: {loadBalancer: {ingress: [{ip: 1.2.3.4, ipMode: Odd}]}}", "status.loadBalancer.ingress[0].ipMode"},
		"ingress mode without IP":  {service(oneIP, onePort, "type: LoadBalancer") + "\nstatus: {loadBalancer: {ingress: [{hostname: a, ipMode: VIP}]}}", "status.loadBalancer.ingress[0].ipMode"},
	} {
		t.Run(name, func(t *testing.T) { expectRefused(t, test.manifest, test.field) })
	}
}

// expectRefused reads a manifest and expects one problem, with that field.
func expectRefused(t *testing.T, manifest, field string) {
	t.Helper()
	s, problems, err := Read("m.yaml", strings.NewReader(manifest), Options{})
	must(t, err)
	if s.Services.Len() != 0 {
		t.Errorf("%d services are left", s.Services.Len())
	}
	if len(problems) != 1 || problems[0].Field != field || problems[0].File != "m.yaml" || problems[0].Line != 1 {
		t.Errorf("problems are %v, want one of %s", problems, field)
	}
}

func TestUnknownAndMisplacedFieldsAreRefused(t *testing.T) {
	for name, test := range map[string]struct{ manifest, message string }{
		"unknown field":   {service(oneIP, onePort, "clusterip: x"), `unknown field "spec.clusterip"`},
		"wrong type":      {service(oneIP, "ports: [{port: http}]"), "cannot unmarshal string"},
		"no kind":         {"apiVersion: v1\nmetadata: {name: web}", "no apiVersion or no kind"},
		"another version": {"apiVersion: discovery.k8s.io/v1beta1\nkind: EndpointSlice\nmetadata: {name: web-1}", `only "discovery.k8s.io/v1"`},
		"no object":       {"[1, 2]", "cannot unmarshal array"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := readOne(t, test.manifest)
			if len(problems) != 1 || !strings.Contains(problems[0], test.message) {
				t.Errorf("problems are %q, want one with %q", problems, test.message)
			}
		})
	}
}

func TestSlicesAreRefusedAsByTheServer(t *testing.T) {
	endpoints := func(n int) string {
		return "[" + strings.Repeat("{addresses: [10.244.1.5]},", n) + "]"
	}
	for name, test := range map[string]struct{ addressType, ports, endpoints, field string }{
		"address type":       {"IPX", "[]", "[]", "addressType"},
		"no address type":    {"''", "[]", "[]", "addressType"},
		"address":            {"IPv4", "[]", "[{addresses: [x]}]", "endpoints[0].addresses[0]"},
		"other family":       {"IPv4", "[]", "[{addresses: ['fd00::1']}]", "endpoints[0].addresses[0]"},
		"loopback":           {"IPv6", "[]", "[{addresses: ['::1']}]", "endpoints[0].addresses[0]"},
		"link-local":         {"IPv4", "[]", "[{addresses: [169.254.1.1]}]", "endpoints[0].addresses[0]"},
		"unspecified":        {"IPv4", "[]", "[{addresses: [0.0.0.0]}]", "endpoints[0].addresses[0]"},
		"multicast":          {"IPv4", "[]", "[{addresses: [224.0.0.1]}]", "endpoints[0].addresses[0]"},
		"no address":         {"IPv4", "[]", "[{}]", "endpoints[0].addresses"},
		"node name":          {"IPv4", "[]", "[{addresses: [10.244.1.5], nodeName: N_1}]", "endpoints[0].nodeName"},
		"zone hint":          {"IPv4", "[]", "[{addresses: [10.244.1.5], hints: {forZones: [{name: ' '}]}}]", "endpoints[0].hints.forZones[0].name"},
		"node hint":          {"IPv4", "[]", "[{addresses: [10.244.1.5], hints: {forNodes: [{name: ' '}]}}]", "endpoints[0].hints.forNodes[0].name"},
		"ports of one name":  {"IPv4", "[{port: 1}, {port: 2}]", "[]", "ports[1].name"},
		"port name":          {"IPv4", "[{name: A_, port: 1}]", "[]", "ports[0].name"},
		"protocol":           {"IPv4", "[{port: 1, protocol: ICMP}]", "[]", "ports[0].protocol"},
		"too many endpoints": {"IPv4", "[]", endpoints(maxEndpoints + 1), "endpoints"},
	} {
		t.Run(name, func(t *testing.T) {
			expectRefused(t, fmt.Sprintf(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: %s
ports: %s
endpoints: %s
`, test.addressType, test.ports, test.endpoints), test.field)
		})
	}
}

func TestNodesAreRefusedAsByTheServer(t *testing.T) {
	for name, test := range map[string]struct{ node, field string }{
		"name":              {"metadata: {name: N_1}", "metadata.name"},
		"pod CIDR":          {"metadata: {name: n1}\nspec: {podCIDRs: [x]}", "spec.podCIDRs[0]"},
		"two of one family": {"metadata: {name: n1}\nspec: {podCIDRs: [10.0.0.0/24, 10.0.1.0/24]}", "spec.podCIDRs[1]"},
	} {
		t.Run(name, func(t *testing.T) { expectRefused(t, "apiVersion: v1\nkind: Node\n"+test.node, test.field) })
	}
}
