package model

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Protocol is a layer-4 protocol by its IP protocol number.
type Protocol uint8

// The protocols that a Service can have.
const (
	TCP  Protocol = 6
	UDP  Protocol = 17
	SCTP Protocol = 132
)

// String returns the protocol in lower case, as iptables spells it.
func (p Protocol) String() string {
	switch p {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	case SCTP:
		return "sctp"
	}
	return fmt.Sprintf("protocol %d", uint8(p))
}

// ParseProtocol reads a Kubernetes protocol name ("TCP", "UDP" or "SCTP").
func ParseProtocol(s string) (Protocol, error) {
	for _, p := range []Protocol{TCP, UDP, SCTP} {
		if s == strings.ToUpper(p.String()) {
			return p, nil
		}
	}
	return 0, fmt.Errorf("protocol %q is none of TCP, UDP, SCTP", s)
}

// Name is the namespace and name of a Service.
type Name struct {
	Namespace string
	Name      string
}

// String returns "namespace/name".
func (n Name) String() string { return n.Namespace + "/" + n.Name }

// Compare orders names by namespace, then by name.
func (n Name) Compare(o Name) int {
	if c := strings.Compare(n.Namespace, o.Namespace); c != 0 {
		return c
	}
	return strings.Compare(n.Name, o.Name)
}

// PortKey identifies a port within a Service, and the same port in its
// EndpointSlices: the port's name, empty for the only port of a Service that
// leaves it out, and its protocol.
type PortKey struct {
	Port     string
	Protocol Protocol
}

// PortName identifies one port of one Service in a cluster.
type PortName struct {
	Name
	PortKey
}

// String returns "namespace/name:port", or "namespace/name" for an unnamed
// port, the form in which comments and chain names of KUBE-* rules carry it.
func (n PortName) String() string {
	if n.Port == "" {
		return n.Name.String()
	}
	return n.Name.String() + ":" + n.Port
}

// Service is one Service with the endpoints behind it: all facts about it that
// bear on what a node does, and none that do not.
type Service struct {
	Name Name

	// Ports in the order of the object. Empty for a name that only
	// EndpointSlices mention.
	Ports []Port

	// ClusterIPs holds at most one address of each family.
	ClusterIPs []netip.Addr
	// ExternalIPs as the user wrote them, both families mixed.
	ExternalIPs []netip.Addr
	// LoadBalancerIPs are the ingress addresses whose ipMode is VIP. Those of
	// mode Proxy are left out: traffic to them belongs to the balancer.
	LoadBalancerIPs []netip.Addr
	// SourceRanges limits who may use LoadBalancerIPs. Both families mixed.
	SourceRanges []netip.Prefix

	// InternalLocal and ExternalLocal are the two traffic policies, true for
	// Local.
	InternalLocal bool
	ExternalLocal bool

	// Affinity is for how long a client stays with its endpoint after its last
	// new connection, in whole seconds; 0 for no affinity.
	Affinity time.Duration

	// HealthCheckNodePort is the port on which a balancer asks whether this
	// node has local endpoints; 0 for none.
	HealthCheckNodePort uint16

	// Endpoints by port, sorted by address and port as text (the order of
	// kube-proxy), each address and port once.
	Endpoints map[PortKey][]Endpoint
}

// Equal reports whether s and o are the same in every respect, or both nil.
func (s *Service) Equal(o *Service) bool {
	if s == nil || o == nil {
		return s == o
	}
	return s.Name == o.Name && slices.Equal(s.Ports, o.Ports) &&
		slices.Equal(s.ClusterIPs, o.ClusterIPs) &&
		slices.Equal(s.ExternalIPs, o.ExternalIPs) &&
		slices.Equal(s.LoadBalancerIPs, o.LoadBalancerIPs) &&
		slices.Equal(s.SourceRanges, o.SourceRanges) &&
		s.InternalLocal == o.InternalLocal && s.ExternalLocal == o.ExternalLocal &&
		s.Affinity == o.Affinity && s.HealthCheckNodePort == o.HealthCheckNodePort &&
		maps.EqualFunc(s.Endpoints, o.Endpoints, equalEndpoints)
}

func equalEndpoints(a, b []Endpoint) bool { return slices.EqualFunc(a, b, Endpoint.Equal) }

// Port is one port of a Service.
type Port struct {
	PortKey
	// Number is the port on the service's addresses.
	Number uint16
	// NodePort is the port on the node's own addresses; 0 for none.
	NodePort uint16
}

// Endpoint is one address and port that serves a service port. Its identity is
// Addr; two endpoints may share an IP address and differ in port.
type Endpoint struct {
	Addr netip.AddrPort

	Ready       bool
	Serving     bool
	Terminating bool

	// Node is the name of the node that it runs on; empty if unknown.
	Node string
	// Zones and Nodes are the topology hints: who should use this endpoint.
	Zones []string
	Nodes []string
}

// Equal reports whether e and o are the same in every respect.
func (e Endpoint) Equal(o Endpoint) bool {
	return e.Addr == o.Addr && e.Ready == o.Ready && e.Serving == o.Serving &&
		e.Terminating == o.Terminating && e.Node == o.Node &&
		slices.Equal(e.Zones, o.Zones) && slices.Equal(e.Nodes, o.Nodes)
}
