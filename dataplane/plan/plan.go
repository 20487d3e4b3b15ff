package plan

import (
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// Plan is what this node does for one family, as far as it was asked.
type Plan struct {
	Family model.Family
	Frame  Frame
	// Services holds the decision for each planned name; a name that maps to
	// a Service without ports has nothing to be programmed.
	Services map[model.Name]Service
	// All says that Services is complete: what is not in it is to go.
	All bool
	// Conflicts are the frontends that were refused to a planned service.
	Conflicts []Conflict
}

// Frame is all that no single service decides.
type Frame struct {
	// Mark is the packet mark's masquerade bit.
	Mark uint32
	// NodePorts says where node ports are served.
	NodePorts NodePortScope
	// GuardLocalnet drops packets from elsewhere to 127.0.0.0/8, which
	// route_localnet would let in.
	GuardLocalnet bool
	// DropInvalid drops forwarded packets of conntrack state INVALID,
	// counted if CountInvalid.
	DropInvalid  bool
	CountInvalid bool
	// Comments is false where so many endpoints make rules that a comment on
	// each would cost more than it helps.
	Comments bool
}

// NodePortScope is the set of destinations on which node ports are served.
type NodePortScope struct {
	// All serves every local address outside Except, which may be not valid.
	All    bool
	Except netip.Prefix
	// Addrs are the addresses if not All, sorted.
	Addrs []netip.Addr
}

// Local tells pod traffic from other traffic. The zero value cannot.
type Local struct {
	// Source is the range of pod addresses, if it is valid.
	Source netip.Prefix
	// Interface is where pod traffic comes in, all interfaces whose names
	// start with it if Prefix; empty if Source decides.
	Interface string
	Prefix    bool
}

// Known reports whether pod traffic can be told at all.
func (l Local) Known() bool { return l.Source.IsValid() || l.Interface != "" }

// Verdict is what happens to new connections of one kind of traffic.
type Verdict uint8

const (
	// Balance spreads them over a pool.
	Balance Verdict = iota
	// Reject refuses them: the service has no usable endpoint anywhere.
	Reject
	// Drop drops them: usable endpoints are only where policy forbids.
	Drop
)

// String returns the verdict in lower case.
func (v Verdict) String() string { return [...]string{"balance", "reject", "drop"}[v] }

// Masquerade says which traffic to a cluster IP gets this node's address.
type Masquerade uint8

const (
	// MasqueradeNone: none but hairpins.
	MasqueradeNone Masquerade = iota
	// MasqueradeOutside: what does not come from a pod.
	MasqueradeOutside
	// MasqueradeAll: all of it.
	MasqueradeAll
)

// Service is the decision for all ports of one service.
type Service struct {
	Name  model.Name
	Ports []Port
	// ReadyHere is how many addresses of ready endpoints are on this node, if
	// there is a HealthCheck to tell it.
	ReadyHere int
}

// Port is the decision for one service port.
type Port struct {
	Name model.PortName

	// Frontends in the order cluster IP, external IPs, load-balancer IPs,
	// node port.
	Frontends []Frontend
	// Public says that there are frontends besides the cluster IP.
	Public bool

	// Internal is for traffic to the cluster IP and External for that to all
	// other frontends. InternalLocal and ExternalLocal say that it goes to the
	// Local pool instead of the Cluster pool.
	Internal, External           Verdict
	InternalLocal, ExternalLocal bool
	// Masquerade is for traffic to the cluster IP.
	Masquerade Masquerade
	// Pods tells pod traffic, which an external policy Local exempts, as it
	// does this node's own traffic: both go to the Cluster pool.
	Pods Local

	// Cluster and Local are the two pools, in the order of the model; a pool
	// that no traffic of this service can use is nil.
	Cluster, Local []netip.AddrPort

	// endpoints are all there are, fit for new connections or not, and node is
	// this one, for Established and Exists.
	endpoints []model.Endpoint
	node      string

	// Affinity is for how long a client stays with its endpoint; 0 for none.
	Affinity time.Duration
	// Sources are the ranges from which load-balancer IPs may be used; nil for
	// any. SourceVIPs allows these addresses as sources too, since the node's
	// own traffic to a load-balancer IP may come from that very address.
	Sources    []netip.Prefix
	SourceVIPs []netip.Addr

	// HealthCheckNodePort is accepted on this node; 0 for none.
	HealthCheckNodePort uint16
	// CountLocalhost counts packets to the node port on loopback addresses.
	CountLocalhost bool
}

// HasEndpoints reports whether the port has usable endpoints anywhere.
func (p Port) HasEndpoints() bool { return p.Internal != Reject }

// Reachable returns the endpoints of both pools, each once, Cluster first.
func (p Port) Reachable() []netip.AddrPort {
	if len(p.Cluster) == 0 {
		return p.Local
	}
	all := p.Cluster[:len(p.Cluster):len(p.Cluster)]
	seen := make(map[netip.AddrPort]bool, len(all))
	for _, ep := range all {
		seen[ep] = true
	}
	for _, ep := range p.Local {
		if !seen[ep] {
			all = append(all, ep)
		}
	}
	return all
}

// FrontendKind says how a frontend came about.
type FrontendKind uint8

const (
	ClusterIP FrontendKind = iota
	ExternalIP
	LoadBalancerIP
	NodePort
)

// String returns the kind in words.
func (k FrontendKind) String() string {
	return [...]string{"cluster IP", "external IP", "load-balancer IP", "node port"}[k]
}

// Frontend is one destination that belongs to a service port.
type Frontend struct {
	Kind FrontendKind
	// Addr is not valid for a NodePort, which is on the addresses of
	// Frame.NodePorts.
	Addr netip.Addr
	Port uint16
}

// Conflict is a frontend that two services claim.
type Conflict struct {
	Frontend Frontend
	Protocol model.Protocol
	Winner   model.PortName
	Loser    model.PortName
}

// String says in one line who claims what and who has it.
func (c Conflict) String() string {
	where := "node port " + strconv.Itoa(int(c.Frontend.Port))
	if c.Frontend.Kind != NodePort {
		where = c.Frontend.Kind.String() + " " + netip.AddrPortFrom(c.Frontend.Addr, c.Frontend.Port).String()
	}
	return fmt.Sprintf("service %s: %s/%s belongs to %s", c.Loser, where, c.Protocol, c.Winner)
}
