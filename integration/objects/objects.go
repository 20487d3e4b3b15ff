// Package objects makes the Services, EndpointSlices and Nodes of tests that
// run the whole product on a node of package lab.
package objects

import (
	"encoding/binary"
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

// A Service is a Service of IPv4, or of both families, and the EndpointSlices
// behind it.
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
	Local bool
	// DualStack gives it addresses of IPv6 too.
	DualStack bool
	Labels    map[string]string
	Endpoints []Endpoint
}

// An Endpoint is a ready one, on a node that need not be where its address is.
// Services of both families need both addresses.
type Endpoint struct {
	Address, IPv6 netip.Addr
	Node          string
}

// At are endpoints at places of the lab, on the nodes where these are.
func At(places ...*lab.Place) []Endpoint {
	var list []Endpoint
	for _, p := range places {
		node := Here
		if strings.HasPrefix(p.Name, "remote") {
			node = Elsewhere
		}
		list = append(list, Endpoint{p.IPv4(), p.IPv6(), node})
	}
	return list
}

// ClusterIP is where s is reached in the cluster.
func (s Service) ClusterIP() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 96, byte(1 + s.Number/250), byte(1 + s.Number%250)}), Port)
}

// ClusterIPv6 is ClusterIP of the other family, if s has both.
func (s Service) ClusterIPv6() netip.AddrPort {
	return netip.AddrPortFrom(numbered("fd00:96::1:0", s.Number), Port)
}

// numbered is an address of IPv6 with a number in its last two bytes.
func numbered(prefix string, number int) netip.Addr {
	a := netip.MustParseAddr(prefix).As16()
	binary.BigEndian.PutUint16(a[14:], uint16(number))
	return netip.AddrFrom16(a)
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

// BalancerIPv6 is Balancer of the other family, if s has both.
func (s Service) BalancerIPv6() netip.AddrPort {
	return netip.AddrPortFrom(numbered("2001:db8::", s.Number), Port)
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
	if s.DualStack {
		s.addFamily(o)
	}
	return o
}

// addFamily gives o what it has of IPv6.
func (s Service) addFamily(o *corev1.Service) {
	policy := corev1.IPFamilyPolicyRequireDualStack
	o.Spec.IPFamilyPolicy = &policy
	o.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	o.Spec.ClusterIPs = []string{o.Spec.ClusterIP, s.ClusterIPv6().Addr().String()}
	if ingress := &o.Status.LoadBalancer.Ingress; len(*ingress) > 0 {
		*ingress = append(*ingress, corev1.LoadBalancerIngress{IP: s.BalancerIPv6().Addr().String()})
	}
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

// Slice is the EndpointSlice of IPv4 behind s.
func (s Service) Slice() *discoveryv1.EndpointSlice {
	return s.slice(s.Name+"-1", discoveryv1.AddressTypeIPv4, func(e Endpoint) netip.Addr { return e.Address })
}

// SliceIPv6 is that of IPv6, if s has both families.
func (s Service) SliceIPv6() *discoveryv1.EndpointSlice {
	return s.slice(s.Name+"-2", discoveryv1.AddressTypeIPv6, func(e Endpoint) netip.Addr { return e.IPv6 })
}

func (s Service) slice(name string, kind discoveryv1.AddressType, address func(Endpoint) netip.Addr) *discoveryv1.EndpointSlice {
	o := &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: s.Name},
		},
		AddressType: kind,
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
			Addresses:  []string{address(e).String()},
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
		ObjectMeta: metav1.ObjectMeta{Name: Here, Labels: map[string]string{corev1.LabelOSStable: "linux"}},
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
		if s.DualStack {
			all = append(all, s.SliceIPv6())
		}
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
