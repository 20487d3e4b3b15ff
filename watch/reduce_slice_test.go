package watch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// webSlice returns a slice of the service default/web with one endpoint.
func webSlice(edits ...func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
	es := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web-1",
			Labels: map[string]string{discoveryv1.LabelServiceName: "web"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8080))}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.244.1.5"}}},
	}
	for _, edit := range edits {
		edit(es)
	}
	return es
}

// reducedEndpoints returns the endpoints of a slice on a service's port http.
func reducedEndpoints(t *testing.T, es *discoveryv1.EndpointSlice) ([]model.Endpoint, []string) {
	t.Helper()
	s, problems := reduceSlice(es)
	if s == nil {
		return nil, texts(problems)
	}
	return merge(webFacts().Ports, []*slice{s})[webFacts().Ports[0].PortKey], texts(problems)
}

func TestReduceSliceLeavesOutWhatIsOfNoMatter(t *testing.T) {
	for name, edit := range map[string]func(*discoveryv1.EndpointSlice){
		"headless":     func(es *discoveryv1.EndpointSlice) { es.Labels[corev1.IsHeadlessService] = "" },
		"no service":   func(es *discoveryv1.EndpointSlice) { es.Labels = nil },
		"domain names": func(es *discoveryv1.EndpointSlice) { es.AddressType = discoveryv1.AddressTypeFQDN },
	} {
		if s, problems := reduceSlice(webSlice(edit)); s != nil || problems != nil {
			t.Errorf("%s: got %+v and %v", name, s, problems)
		}
	}
}

func TestReduceEndpoint(t *testing.T) {
	for name, test := range map[string]struct {
		endpoint discoveryv1.Endpoint
		want     model.Endpoint
	}{
		"no conditions mean ready": {
			discoveryv1.Endpoint{Addresses: []string{"10.244.1.5"}},
			endpoint("10.244.1.5:8080"),
		},
		"conditions": {
			discoveryv1.Endpoint{Addresses: []string{"10.244.1.5"}, Conditions: discoveryv1.EndpointConditions{
				Ready: new(false), Serving: new(true), Terminating: new(true),
			}},
			endpoint("10.244.1.5:8080", func(e *model.Endpoint) { e.Ready, e.Terminating = false, true }),
		},
		"not serving": {
			discoveryv1.Endpoint{Addresses: []string{"10.244.1.5"}, Conditions: discoveryv1.EndpointConditions{Serving: new(false)}},
			endpoint("10.244.1.5:8080", func(e *model.Endpoint) { e.Serving = false }),
		},
		"only the first address counts": {
			discoveryv1.Endpoint{Addresses: []string{"10.244.1.5", "10.244.1.6"}},
			endpoint("10.244.1.5:8080"),
		},
		"leading zeros": {
			discoveryv1.Endpoint{Addresses: []string{"010.244.001.005"}},
			endpoint("10.244.1.5:8080"),
		},
		"node and hints": {
			discoveryv1.Endpoint{Addresses: []string{"10.244.1.5"}, NodeName: new("n1"), Hints: &discoveryv1.EndpointHints{
				ForZones: []discoveryv1.ForZone{{Name: "a"}, {Name: "b"}}, ForNodes: []discoveryv1.ForNode{{Name: "n1"}},
			}},
			endpoint("10.244.1.5:8080", func(e *model.Endpoint) {
				e.Node, e.Zones, e.Nodes = "n1", []string{"a", "b"}, []string{"n1"}
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := reducedEndpoints(t, webSlice(func(es *discoveryv1.EndpointSlice) {
				es.Endpoints = []discoveryv1.Endpoint{test.endpoint}
			}))
			if diff := cmp.Diff([]model.Endpoint{test.want}, got, compareFacts); diff != "" {
				t.Errorf("endpoints (-want +got):\n%s", diff)
			}
			if problems != nil {
				t.Errorf("problems %v", problems)
			}
		})
	}
}

func TestReduceSliceReportsWhatItLeavesOut(t *testing.T) {
	for name, test := range map[string]struct {
		edit    func(*discoveryv1.EndpointSlice)
		left    int // endpoints
		problem string
	}{
		"an address of the other family": {
			func(es *discoveryv1.EndpointSlice) {
				es.Endpoints = append(es.Endpoints, discoveryv1.Endpoint{Addresses: []string{"fd00::5"}})
			}, 1, "endpointslice default/web-1: endpoints[1].addresses[0]: fd00::5 is not an IPv4 address",
		},
		"no address": {
			func(es *discoveryv1.EndpointSlice) { es.Endpoints = append(es.Endpoints, discoveryv1.Endpoint{}) },
			1, "endpointslice default/web-1: endpoints[1].addresses: no address",
		},
		"text for an address": {
			func(es *discoveryv1.EndpointSlice) { es.Endpoints[0].Addresses[0] = "pod" },
			0, `endpointslice default/web-1: endpoints[0].addresses[0]: "pod" is not an IP address`,
		},
		"no port": {
			func(es *discoveryv1.EndpointSlice) { es.Ports[0].Port = nil },
			0, "endpointslice default/web-1: ports[0].port: 0 is not between 1 and 65535",
		},
		"port out of range": {
			func(es *discoveryv1.EndpointSlice) { es.Ports[0].Port = new(int32(70000)) },
			0, "endpointslice default/web-1: ports[0].port: 70000 is not between 1 and 65535",
		},
		"protocol": {
			func(es *discoveryv1.EndpointSlice) { es.Ports[0].Protocol = new(corev1.Protocol("QUIC")) },
			0, `endpointslice default/web-1: ports[0].protocol: protocol "QUIC" is none of TCP, UDP, SCTP`,
		},
		"address type": {
			func(es *discoveryv1.EndpointSlice) { es.AddressType = "IPX" },
			0, `endpointslice default/web-1: addressType: "IPX" is none of IPv4, IPv6, FQDN`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := reducedEndpoints(t, webSlice(test.edit))
			if len(got) != test.left {
				t.Errorf("%d endpoints are left, want %d", len(got), test.left)
			}
			if diff := cmp.Diff([]string{test.problem}, problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSlicePortsWithoutNameAndProtocolAreUnnamedTCP(t *testing.T) {
	s, _ := reduceSlice(webSlice(func(es *discoveryv1.EndpointSlice) { es.Ports[0].Name, es.Ports[0].Protocol = nil, nil }))
	if want := (slicePort{model.PortKey{Protocol: model.TCP}, 8080}); s.ports[0] != want {
		t.Errorf("port is %+v, want %+v", s.ports[0], want)
	}
}

func TestEqualHintsAreInMemoryOnce(t *testing.T) {
	zone := func(name string) *discoveryv1.EndpointHints {
		return &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: name}}}
	}
	s, _ := reduceSlice(webSlice(func(es *discoveryv1.EndpointSlice) {
		es.Endpoints = []discoveryv1.Endpoint{
			{Addresses: []string{"10.244.1.1"}, Hints: zone("a")},
			{Addresses: []string{"10.244.1.2"}, Hints: zone("b")},
			{Addresses: []string{"10.244.1.3"}, Hints: zone("a")},
			{Addresses: []string{"10.244.1.4"}},
		}
	}))
	e := s.endpoints
	if e[0].hints != e[2].hints || e[0].hints == e[1].hints || e[3].hints != nil {
		t.Errorf("hints are %p, %p, %p, %p", e[0].hints, e[1].hints, e[2].hints, e[3].hints)
	}
}
