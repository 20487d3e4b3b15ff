package watch

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// endpoint returns a ready endpoint, changed by edits.
func endpoint(addr string, edits ...func(*model.Endpoint)) model.Endpoint {
	e := model.Endpoint{Addr: netip.MustParseAddrPort(addr), Ready: true, Serving: true}
	for _, edit := range edits {
		edit(&e)
	}
	return e
}

// sliceOf reduces a slice with these endpoints on the port http.
func sliceOf(port int32, t discoveryv1.AddressType, endpoints ...discoveryv1.Endpoint) *slice {
	s, _ := reduceSlice(webSlice(func(es *discoveryv1.EndpointSlice) {
		es.AddressType = t
		es.Ports[0].Port = &port
		es.Endpoints = endpoints
	}))
	return s
}

func at(addr string) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{addr}}
}

func TestMergeSortsByText(t *testing.T) {
	from := []*slice{
		sliceOf(8080, discoveryv1.AddressTypeIPv4, at("10.0.0.9"), at("10.0.0.10"), at("10.0.0.1")),
		sliceOf(80, discoveryv1.AddressTypeIPv4, at("10.0.0.1")),
		sliceOf(8080, discoveryv1.AddressTypeIPv6, at("fd00::1")),
	}
	var order []string
	for _, e := range merge(webFacts().Ports, from)[webFacts().Ports[0].PortKey] {
		order = append(order, e.Addr.String())
	}
	// One address with two ports is two endpoints; '1' sorts before '9', and
	// digits before '['.
	want := []string{"10.0.0.10:8080", "10.0.0.1:80", "10.0.0.1:8080", "10.0.0.9:8080", "[fd00::1]:8080"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestMergePrefersTheBetterOfEqualAddresses(t *testing.T) {
	with := func(ready, serving, terminating bool, node string) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{
			Addresses: []string{"10.0.0.1"}, NodeName: &node,
			Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
		}
	}
	// From best to worst.
	ranking := []discoveryv1.Endpoint{
		with(true, true, false, "a"),
		with(true, true, false, "b"),
		with(true, false, false, "a"),
		with(false, true, false, "a"),
		with(false, false, false, "a"),
		with(true, true, true, "a"),
		with(false, true, true, "a"),
		with(false, false, true, "a"),
		with(false, false, true, "b"),
	}
	for best := range ranking {
		want := merge(webFacts().Ports, []*slice{sliceOf(80, discoveryv1.AddressTypeIPv4, ranking[best])})
		for range 20 {
			var from []*slice
			for _, i := range rand.Perm(len(ranking) - best) {
				from = append(from, sliceOf(80, discoveryv1.AddressTypeIPv4, ranking[best+i]))
			}
			if diff := cmp.Diff(want, merge(webFacts().Ports, from), compareFacts); diff != "" {
				t.Fatalf("from rank %d (-want +got):\n%s", best, diff)
			}
		}
	}
}

func TestMergeFindsEndpointsByNameAndProtocol(t *testing.T) {
	http := model.PortKey{Port: "http", Protocol: model.TCP}
	quic := model.PortKey{Port: "http", Protocol: model.UDP}
	none := model.PortKey{Port: "admin", Protocol: model.TCP}
	s := &slice{
		ports:     []slicePort{{http, 8080}, {quic, 8443}, {http, 8081}, {model.PortKey{Port: "other", Protocol: model.TCP}, 1}},
		endpoints: sliceOf(1, discoveryv1.AddressTypeIPv4, at("10.0.0.1")).endpoints,
	}
	got := merge([]model.Port{{PortKey: http}, {PortKey: quic}, {PortKey: none}}, []*slice{s})
	want := map[model.PortKey][]model.Endpoint{
		http: {endpoint("10.0.0.1:8080"), endpoint("10.0.0.1:8081")},
		quic: {endpoint("10.0.0.1:8443")},
	}
	if diff := cmp.Diff(want, got, compareFacts); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
}
