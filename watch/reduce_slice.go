package watch

import (
	"fmt"
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// reduceSlice returns what matters of an EndpointSlice, or nil if it is of no
// matter: one of a headless service, of no service, or of domain names.
func reduceSlice(es *discoveryv1.EndpointSlice) (*slice, []Problem) {
	service := es.Labels[discoveryv1.LabelServiceName]
	_, headless := es.Labels[corev1.IsHeadlessService]
	if headless || service == "" || es.AddressType == discoveryv1.AddressTypeFQDN {
		return nil, nil
	}
	name := model.Name{Namespace: es.Namespace, Name: es.Name}
	f := &findings{object: object{kindSlice, name}}
	family, ok := familyOf(es.AddressType)
	if !ok {
		f.add("addressType", "%q is none of IPv4, IPv6, FQDN", es.AddressType)
		return nil, f.list
	}
	return &slice{
		name:      name,
		service:   model.Name{Namespace: es.Namespace, Name: service},
		family:    family,
		ports:     slicePorts(es.Ports, f),
		endpoints: backends(es.Endpoints, family, f),
		triggered: readTrigger(es.Annotations, f),
	}, f.list
}

func familyOf(t discoveryv1.AddressType) (model.Family, bool) {
	for _, f := range model.Families {
		if string(t) == f.String() {
			return f, true
		}
	}
	return 0, false
}

func slicePorts(ports []discoveryv1.EndpointPort, f *findings) []slicePort {
	all := make([]slicePort, 0, len(ports))
	for i, p := range ports {
		if port, ok := readSlicePort(p, fmt.Sprintf("ports[%d]", i), f); ok {
			all = append(all, port)
		}
	}
	return all
}

func readSlicePort(p discoveryv1.EndpointPort, field string, f *findings) (slicePort, bool) {
	protocol, err := protocolOf(valueOf(p.Protocol))
	if err != nil {
		f.add(field+".protocol", "%v", err)
		return slicePort{}, false
	}
	number, err := parsePort(valueOf(p.Port))
	if err != nil {
		f.add(field+".port", "%v", err)
		return slicePort{}, false
	}
	return slicePort{model.PortKey{Port: valueOf(p.Name), Protocol: protocol}, number}, true
}

// backends returns the endpoints that can be used. Equal hints are in memory
// once, and so are equal node names, also in the hints: their handles live as
// long as some endpoint on that node.
func backends(endpoints []discoveryv1.Endpoint, family model.Family, f *findings) []backend {
	all := make([]backend, 0, len(endpoints))
	var distinct []*hints
	for i, e := range endpoints {
		// Only the first address of an endpoint counts, for every consumer.
		if len(e.Addresses) == 0 {
			f.add(fmt.Sprintf("endpoints[%d].addresses", i), "no address")
			continue
		}
		addr, err := parseAddrOf(family, e.Addresses[0])
		if err != nil {
			f.add(fmt.Sprintf("endpoints[%d].addresses[0]", i), "%v", err)
			continue
		}
		h := readHints(e.Hints)
		if same := slices.IndexFunc(distinct, h.equal); same >= 0 {
			h = distinct[same]
		} else {
			distinct = append(distinct, h)
		}
		all = append(all, backend{
			addr:        addr,
			node:        unique.Make(valueOf(e.NodeName)),
			hints:       h,
			ready:       e.Conditions.Ready == nil || *e.Conditions.Ready,
			serving:     e.Conditions.Serving == nil || *e.Conditions.Serving,
			terminating: valueOf(e.Conditions.Terminating),
		})
	}
	return all
}

func readHints(h *discoveryv1.EndpointHints) *hints {
	if h == nil || len(h.ForZones)+len(h.ForNodes) == 0 {
		return nil
	}
	read := &hints{}
	for _, z := range h.ForZones {
		read.zones = append(read.zones, z.Name)
	}
	for _, n := range h.ForNodes {
		read.nodes = append(read.nodes, unique.Make(n.Name).Value())
	}
	return read
}

// valueOf returns what p points to; zero for nil.
func valueOf[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
