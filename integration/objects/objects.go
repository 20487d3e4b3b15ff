// Package objects makes the Services, EndpointSlices and Nodes of tests that
// run the whole product on a node of package lab.
package objects

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/nlproxy/nlproxy/integration/lab"
)

// The port of every Service, of each protocol, and that of its endpoints.
const (
	Port       = 80
	TargetPort = 8080
)

// The names of the node, and of the one where the lab's remote pods are.
const (
	Here      = "node1"
	Elsewhere = "node2"
)

// namespace is that of all objects.
const namespace = corev1.NamespaceDefault

// A Service is a Service of IPv4 and the EndpointSlice behind it.
type Service struct {
	Name string
	// Number, 1 to 2000, makes its addresses and its node port. Balanced ones
	// have numbers up to 250.
	Number int
	// Type is ClusterIP if it is empty.
	Type corev1.ServiceType
	// Headless ones have no ClusterIP.
	Headless bool
	// Protocols are those of its ports; TCP and UDP if it is empty.
	Protocols []corev1.Protocol
	// Affinity is by client, for three hours.
	Affinity bool
	// Local keeps traffic from inside on the node.
	Local     bool
	Labels    map[string]string
	Endpoints []Endpoint
}

// An Endpoint is a ready one, on a node that need not be where its address is.
type Endpoint struct {
	Address netip.Addr
	Node    string
}

// At are endpoints at places of the lab, on the nodes where these are.
func At(places ...*lab.Place) []Endpoint {
	var list []Endpoint
	for _, p := range places {
		node := Here
		if strings.HasPrefix(p.Name, "remote") {
			node = Elsewhere
		}
		list = append(list, Endpoint{p.IPv4(), node})
	}
	return list
}

// ClusterIP is where s is reached in the cluster.
func (s Service) ClusterIP() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 96, byte(1 + s.Number/250), byte(1 + s.Number%250)}), Port)
}

// NodePort is where s is reached on an address of the node, unless its type is
// ClusterIP.
func (s Service) NodePort(node netip.Addr) netip.AddrPort {
	return netip.AddrPortFrom(node, s.nodePort())
}

func (s Service) nodePort() uint16 { return uint16(30000 + s.Number) }

// Balancer is the address of s's load balancer, if its type is LoadBalancer.
func (s Service) Balancer() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(s.Number)}), Port)
}

// Object is the Service itself.
func (s Service) Object() *corev1.Service {
	o := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: s.Name, Namespace: namespace, Labels: s.Labels},
		Spec: corev1.ServiceSpec{
			Type:      s.Type,
			ClusterIP: s.ClusterIP().Addr().String(),
			Ports:     s.ports(),
		},
	}
	if s.Headless {
		o.Spec.ClusterIP = corev1.ClusterIPNone
	}
	if s.Affinity {
		o.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	}
	if s.Local {
		local := corev1.ServiceInternalTrafficPolicyLocal
		o.Spec.InternalTrafficPolicy = &local
	}
	if s.Type == corev1.ServiceTypeLoadBalancer {
		o.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: s.Balancer().Addr().String()}}
	}
	return o
}

func (s Service) ports() []corev1.ServicePort {
	var ports []corev1.ServicePort
	for _, p := range s.protocols() {
		port := corev1.ServicePort{Name: portName(p), Protocol: p, Port: Port, TargetPort: intstr.FromInt32(TargetPort)}
		if s.Type != "" && s.Type != corev1.ServiceTypeClusterIP {
			port.NodePort = int32(s.nodePort())
		}
		ports = append(ports, port)
	}
	return ports
}

func (s Service) protocols() []corev1.Protocol {
	if len(s.Protocols) > 0 {
		return s.Protocols
	}
	return []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP}
}

func portName(p corev1.Protocol) string { return strings.ToLower(string(p)) }

// Slice is the EndpointSlice behind s.
func (s Service) Slice() *discoveryv1.EndpointSlice {
	o := &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{
			Name: s.Name + "-1", Namespace: namespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: s.Name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{},
	}
	if s.Headless {
		o.Labels[corev1.IsHeadlessService] = ""
	}
	for _, p := range s.protocols() {
		name, number := portName(p), int32(TargetPort)
		o.Ports = append(o.Ports, discoveryv1.EndpointPort{Name: &name, Protocol: &p, Port: &number})
	}
	for _, e := range s.Endpoints {
		ready := true
		o.Endpoints = append(o.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{e.Address.String()},
			NodeName:   &e.Node,
			Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		})
	}
	return o
}

// Node is the Node of a lab.Node.
func Node() *corev1.Node {
	return &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: Here},
		Spec:       corev1.NodeSpec{PodCIDR: "10.244.1.0/24", PodCIDRs: []string{"10.244.1.0/24", "fd00:244:1::/64"}},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: "192.168.7.1"},
			{Type: corev1.NodeInternalIP, Address: "fd00:7::1"},
		}},
	}
}

// Documents are services with their slices, each after the other, as YAML.
func Documents(t testing.TB, services ...Service) string {
	t.Helper()
	var all []runtime.Object
	for _, s := range services {
		all = append(all, s.Object(), s.Slice())
	}
	return YAML(t, all...)
}

// YAML is objects as documents of YAML, each on a line.
func YAML(t testing.TB, objects ...runtime.Object) string {
	t.Helper()
	var b strings.Builder
	for _, o := range objects {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "---\n%s\n", text)
	}
	return b.String()
}
