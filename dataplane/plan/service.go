package plan

import (
	"net/netip"
	"slices"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// decider plans services one by one, each on its own facts.
type decider struct {
	family model.Family
	opts   Options
	node   model.Node
	local  Local
	// countLocalhost is set where node ports on loopback are served and counted.
	countLocalhost bool
}

// service plans all ports of svc.
func (d decider) service(svc *model.Service) Service {
	ports := d.claimed(svc)
	for i := range ports {
		d.decide(&ports[i], svc, svc.Ports[i])
	}
	planned := Service{Name: svc.Name, Ports: ports}
	if planned.HealthCheck() != 0 {
		planned.ReadyHere = d.readyHere(svc)
	}
	return planned
}

// claimed returns the ports of svc as far as claims need them: their names and
// frontends. A service without a cluster IP of the family has no part in it.
func (d decider) claimed(svc *model.Service) []Port {
	if svc == nil {
		return nil
	}
	clusterIPs := model.OfFamily(svc.ClusterIPs, d.family)
	if len(clusterIPs) == 0 {
		return nil
	}
	ports := make([]Port, len(svc.Ports))
	for i, port := range svc.Ports {
		ports[i].Name = model.PortName{Name: svc.Name, PortKey: port.PortKey}
		ports[i].Frontends = d.frontends(svc, port, clusterIPs[0])
	}
	return ports
}

// decide fills in what becomes of the traffic to p.
func (d decider) decide(p *Port, svc *model.Service, port model.Port) {
	p.Public = len(p.Frontends) > 1
	p.InternalLocal = svc.InternalLocal
	p.ExternalLocal = svc.ExternalLocal
	p.Masquerade = d.masquerade()
	p.Pods = d.local
	p.Affinity = svc.Affinity
	p.HealthCheckNodePort = svc.HealthCheckNodePort
	p.CountLocalhost = d.countLocalhost
	p.endpoints, p.node = ofFamily(svc.Endpoints[port.PortKey], d.family), d.node.Name
	d.fillPools(p, p.endpoints)
	d.limitSources(p, svc)
}

func (d decider) frontends(svc *model.Service, port model.Port, clusterIP netip.Addr) []Frontend {
	fronts := []Frontend{{ClusterIP, clusterIP, port.Number}}
	add := func(kind FrontendKind, addrs []netip.Addr) {
		for _, a := range model.OfFamily(addrs, d.family) {
			if f := (Frontend{kind, a, port.Number}); !slices.Contains(fronts, f) {
				fronts = append(fronts, f)
			}
		}
	}
	if !d.opts.NoExternalIPs {
		add(ExternalIP, svc.ExternalIPs)
	}
	add(LoadBalancerIP, svc.LoadBalancerIPs)
	if port.NodePort != 0 {
		fronts = append(fronts, Frontend{Kind: NodePort, Port: port.NodePort})
	}
	return fronts
}

func (d decider) masquerade() Masquerade {
	switch {
	case d.opts.MasqueradeAll:
		return MasqueradeAll
	case d.local.Known():
		return MasqueradeOutside
	}
	return MasqueradeNone
}

// fillPools decides which endpoints each kind of traffic may use, and what
// becomes of it if there are none. The Cluster pool is needed for policy
// Cluster, and behind every public frontend, since policy Local exempts pods
// and the node itself.
func (d decider) fillPools(p *Port, eps []model.Endpoint) {
	if !p.InternalLocal || p.Public {
		p.Cluster = usable(eps, near(eps, d.node), anywhere)
	}
	if p.InternalLocal || p.ExternalLocal && p.Public {
		p.Local = usable(eps, on(d.node.Name), on(d.node.Name))
	}
	exists := slices.ContainsFunc(eps, func(ep model.Endpoint) bool { return stateOf(ep) != unfit })
	p.Internal = verdict(exists, p.InternalLocal, p.Local)
	p.External = verdict(exists, p.ExternalLocal, p.Local)
}

func verdict(exists, policyLocal bool, local []netip.AddrPort) Verdict {
	switch {
	case !exists:
		return Reject
	case policyLocal && len(local) == 0:
		return Drop
	}
	return Balance
}

// limitSources applies the source ranges of the family. A range of length zero
// allows everybody and so makes the others moot.
func (d decider) limitSources(p *Port, svc *model.Service) {
	ranges := model.PrefixesOfFamily(svc.SourceRanges, d.family)
	open := func(r netip.Prefix) bool { return r.Bits() == 0 }
	if len(ranges) == 0 || slices.ContainsFunc(ranges, open) {
		return
	}
	own := d.node.Address(d.family)
	holdsNode := func(r netip.Prefix) bool { return own.IsValid() && r.Contains(own) }
	for _, r := range ranges {
		p.Sources = append(p.Sources, r.Masked())
	}
	if slices.ContainsFunc(ranges, holdsNode) {
		p.SourceVIPs = model.OfFamily(svc.LoadBalancerIPs, d.family)
	}
}
