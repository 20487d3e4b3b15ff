package iptables

import (
	"net/netip"

	"github.com/google/nftables/expr"
	"github.com/nlproxy/nlproxy/dataplane/phrase"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/nlproxy/nlproxy/dataplane/xt"
)

// externalTraffic is the chain behind every frontend but the cluster IP. With
// policy Cluster all traffic is masqueraded, since its endpoint may be on
// another node. With policy Local only endpoints here are used and the source
// is kept; pods and the node itself are exempt.
func (e *encoder) externalTraffic(p plan.Port, n names) []rules.Rule {
	name := p.Name.String()
	if !p.ExternalLocal {
		return []rules.Rule{
			rule(xt.Comment("masquerade traffic for "+name+" external destinations"), phrase.Jump(markMasq)),
			rule(nil, phrase.Jump(n.svc())),
		}
	}
	var rs []rules.Rule
	if p.Pods.Known() {
		rs = append(rs, rule(from(p.Pods),
			xt.Comment("pod traffic for "+name+" external destinations"), phrase.Jump(n.svc())))
	}
	rs = append(rs,
		rule(xt.Comment("masquerade LOCAL traffic for "+name+" external destinations"),
			xt.SourceLocal(), phrase.Jump(markMasq)),
		rule(xt.Comment("route LOCAL traffic for "+name+" external destinations"),
			xt.SourceLocal(), phrase.Jump(n.svc())))
	if p.External == plan.Balance {
		rs = append(rs, rule(nil, phrase.Jump(n.svl())))
	}
	return rs
}

// firewalled reports whether load-balancer IPs are limited to source ranges.
func firewalled(p plan.Port) bool {
	if !p.HasEndpoints() || len(p.Sources) == 0 {
		return false
	}
	for _, f := range p.Frontends {
		if f.Kind == plan.LoadBalancerIP {
			return true
		}
	}
	return false
}

// sourceRanges lets through who may use a load-balancer IP. Others fall out of
// the chain untranslated, and KUBE-PROXY-FIREWALL drops them.
func sourceRanges(p plan.Port, n names) []rules.Rule {
	name := p.Name.String()
	allow := func(from netip.Prefix) rules.Rule {
		return rule(phrase.Source(from), xt.Comment(name+" loadbalancer IP"), phrase.Jump(n.ext()))
	}
	var rs []rules.Rule
	for _, r := range p.Sources {
		rs = append(rs, allow(r))
	}
	for _, vip := range p.SourceVIPs {
		rs = append(rs, allow(host(vip)))
	}
	return append(rs, rule(
		xt.Comment("other traffic to "+name+" will be dropped by "+proxyFirewall), nothing()))
}

// kindComments ends the comment of a frontend's rule.
var kindComments = [...]string{
	plan.ClusterIP:      " cluster IP",
	plan.ExternalIP:     " external IP",
	plan.LoadBalancerIP: " loadbalancer IP",
	plan.NodePort:       "",
}

// frontend dispatches the traffic to f, and rejects or drops what may not be
// translated.
func (e *encoder) frontend(p plan.Port, n names, f plan.Frontend) {
	verdict := p.External
	if f.Kind == plan.ClusterIP {
		verdict = p.Internal
	}
	if f.Kind == plan.ClusterIP && verdict == plan.Balance || f.Kind != plan.ClusterIP && p.HasEndpoints() {
		e.dispatch(p, n, f)
	}
	if f.Kind == plan.LoadBalancerIP && firewalled(p) {
		e.denied = append(e.denied, e.matching(p, f,
			p.Name.String()+" traffic not accepted by "+n.fw(), phrase.Drop()))
	}
	switch verdict {
	case plan.Reject:
		e.refuse(p, f, " has no endpoints", reject(e.family))
	case plan.Drop:
		e.refuse(p, f, " has no local endpoints", phrase.Drop())
	}
}

// dispatch sends the traffic of f to the chain that handles it.
func (e *encoder) dispatch(p plan.Port, n names, f plan.Frontend) {
	target := phrase.Jump(handler(p, n, f))
	comment := p.Name.String() + kindComments[f.Kind]
	if f.Kind != plan.NodePort {
		e.natServices = append(e.natServices, e.matching(p, f, comment, target))
		return
	}
	if p.CountLocalhost {
		e.natNodePorts = append(e.natNodePorts, limited(p.Name.Protocol,
			phrase.Destination(loopback), phrase.Protocol(p.Name.Protocol), xt.Comment(comment),
			toPort(p.Name.Protocol, f.Port), xt.NFAcct(LocalhostNodePorts), target))
	}
	e.natNodePorts = append(e.natNodePorts, limited(p.Name.Protocol,
		phrase.Protocol(p.Name.Protocol), xt.Comment(comment), toPort(p.Name.Protocol, f.Port), target))
}

// handler names the chain for the traffic of f.
func handler(p plan.Port, n names, f plan.Frontend) string {
	switch {
	case f.Kind == plan.ClusterIP && p.InternalLocal:
		return n.svl()
	case f.Kind == plan.ClusterIP:
		return n.svc()
	case f.Kind == plan.LoadBalancerIP && firewalled(p):
		return n.fw()
	}
	return n.ext()
}

// refuse rejects or drops, in the filter table, what was not translated.
func (e *encoder) refuse(p plan.Port, f plan.Frontend, why string, action []expr.Any) {
	r := e.matching(p, f, p.Name.String()+why, action)
	if f.Kind == plan.ClusterIP {
		e.filterServices = append(e.filterServices, r)
		return
	}
	e.external = append(e.external, r)
}

// matching is a rule for packets to f.
func (e *encoder) matching(p plan.Port, f plan.Frontend, comment string, action []expr.Any) rules.Rule {
	proto := p.Name.Protocol
	if f.Kind == plan.NodePort {
		return limited(proto, phrase.Protocol(proto), xt.Comment(comment),
			xt.DestinationLocal(), toPort(proto, f.Port), action)
	}
	return limited(proto, to(f.Addr, f.Port, proto, comment), action)
}
