package iptables

import (
	"iter"
	"maps"
	"net/netip"
	"slices"

	"github.com/google/nftables/expr"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/phrase"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/nlproxy/nlproxy/dataplane/xt"
)

// loopback is what route_localnet makes routable.
var loopback = netip.PrefixFrom(netip.AddrFrom4([4]byte{127}), 8)

// Encode yields the parts of a plan: that of rules.Frame first, then those of
// the services in it, by name. A service that has nothing to be programmed
// yields a part without blocks.
func Encode(p plan.Plan) iter.Seq[rules.Part] {
	return func(yield func(rules.Part) bool) {
		if !yield(frame(p.Family, p.Frame)) {
			return
		}
		for _, name := range slices.SortedFunc(maps.Keys(p.Services), model.Name.Compare) {
			if !yield(service(p.Family, p.Services[name], p.Frame.Comments)) {
				return
			}
		}
	}
}

// service encodes one service.
func service(f model.Family, s plan.Service, comments bool) rules.Part {
	e := encoder{family: f, comments: comments}
	for _, port := range s.Ports {
		e.port(port)
	}
	return rules.Part{Family: f, Owner: s.Name.String(), Blocks: append(e.own, e.shared()...)}
}

// encoder collects the blocks of one service.
type encoder struct {
	family   model.Family
	comments bool

	own []rules.Block
	// in the chains that all services share
	natServices, natNodePorts               []rules.Rule
	filterServices, external, ports, denied []rules.Rule
}

// shared returns the blocks in shared chains, those without rules left out.
func (e *encoder) shared() []rules.Block {
	all := []rules.Block{
		{Chain: chain(e.family, natTable, services), Rules: e.natServices},
		{Chain: chain(e.family, natTable, nodePorts), Rules: e.natNodePorts},
		{Chain: chain(e.family, filterTable, services), Rules: e.filterServices},
		{Chain: chain(e.family, filterTable, externalServices), Rules: e.external},
		{Chain: chain(e.family, filterTable, nodePorts), Rules: e.ports},
		{Chain: chain(e.family, filterTable, proxyFirewall), Rules: e.denied},
	}
	return slices.DeleteFunc(all, func(b rules.Block) bool { return len(b.Rules) == 0 })
}

// add gives the service a chain of its own.
func (e *encoder) add(name string, rs []rules.Rule) {
	id := rules.ChainID{Table: rules.Table{Family: e.family, Name: natTable}, Name: name}
	e.own = append(e.own, rules.Block{Chain: rules.Chain{ID: id, Kind: rules.Private}, Rules: rs})
}

func (e *encoder) port(p plan.Port) {
	n := namesOf(p)
	e.endpoints(p, n)
	e.pools(p, n)
	if p.HasEndpoints() && p.Public {
		e.add(n.ext(), e.externalTraffic(p, n))
	}
	if firewalled(p) {
		e.add(n.fw(), sourceRanges(p, n))
	}
	for _, f := range p.Frontends {
		e.frontend(p, n, f)
	}
	if p.HealthCheckNodePort != 0 {
		e.ports = append(e.ports, limited(model.TCP, phrase.Protocol(model.TCP),
			xt.Comment(p.Name.String()+" health check node port"),
			phrase.DestinationPort(p.HealthCheckNodePort), phrase.Accept()))
	}
}

// endpoints makes a chain for each endpoint that this node may use.
func (e *encoder) endpoints(p plan.Port, n names) {
	comment := e.comment(p.Name.String())
	for _, ep := range p.Reachable() {
		sep := n.sep(ep)
		var remember []expr.Any
		if p.Affinity != 0 {
			remember = xt.RecentSet(sep)
		}
		e.add(sep, []rules.Rule{
			rule(phrase.Source(host(ep.Addr())), comment, phrase.Jump(markMasq)),
			limited(p.Name.Protocol, phrase.Protocol(p.Name.Protocol), comment, remember,
				bare(p.Name.Protocol), xt.DNAT(ep)),
		})
	}
}

// comment is for rules that exist per endpoint.
func (e *encoder) comment(text string) []expr.Any {
	if !e.comments {
		return nil
	}
	return xt.Comment(text)
}

// pools makes the chains that spread connections, with the masquerade of
// traffic to the cluster IP in front of the one that serves it.
func (e *encoder) pools(p plan.Port, n names) {
	masq := internalMasquerade(p)
	if len(p.Cluster) > 0 {
		e.add(n.svc(), slices.Concat(only(!p.InternalLocal, masq), e.spread(p, n, p.Cluster)))
	}
	if len(p.Local) > 0 {
		e.add(n.svl(), slices.Concat(only(p.InternalLocal, masq), e.spread(p, n, p.Local)))
	}
}

func only(condition bool, rs []rules.Rule) []rules.Rule {
	if !condition {
		return nil
	}
	return rs
}

func internalMasquerade(p plan.Port) []rules.Rule {
	i := slices.IndexFunc(p.Frontends, func(f plan.Frontend) bool { return f.Kind == plan.ClusterIP })
	if i < 0 || p.Internal != plan.Balance || p.Masquerade == plan.MasqueradeNone {
		return nil
	}
	var outside []expr.Any
	if p.Masquerade == plan.MasqueradeOutside {
		outside = notFrom(p.Pods)
	}
	ip := p.Frontends[i]
	return []rules.Rule{limited(p.Name.Protocol, outside,
		to(ip.Addr, ip.Port, p.Name.Protocol, p.Name.String()+" cluster IP"),
		phrase.Jump(markMasq))}
}

// spread sends a client back to the endpoint that it had, then each of the n-i
// endpoints left gets one in n-i of the rest.
func (e *encoder) spread(p plan.Port, n names, pool []netip.AddrPort) []rules.Rule {
	rs := make([]rules.Rule, 0, 2*len(pool))
	if p.Affinity != 0 {
		for _, ep := range pool {
			rs = append(rs, rule(e.comment(p.Name.String()+" -> "+ep.String()),
				xt.RecentCheck(n.sep(ep), uint32(p.Affinity.Seconds())),
				phrase.Jump(n.sep(ep))))
		}
	}
	for i, ep := range pool {
		var chance []expr.Any
		if left := len(pool) - i; left > 1 {
			chance = xt.Statistic(left)
		}
		rs = append(rs, rule(e.comment(p.Name.String()+" -> "+ep.String()), chance, phrase.Jump(n.sep(ep))))
	}
	return rs
}

func from(pods plan.Local) []expr.Any {
	if pods.Source.IsValid() {
		return phrase.Source(pods.Source)
	}
	return phrase.InInterface(interfaceOf(pods))
}

func notFrom(pods plan.Local) []expr.Any {
	if pods.Source.IsValid() {
		return phrase.NotSource(pods.Source)
	}
	return phrase.NotInInterface(interfaceOf(pods))
}

// interfaceOf spells an interface or prefix as iptables does.
func interfaceOf(pods plan.Local) string {
	if pods.Prefix {
		return pods.Interface + "+"
	}
	return pods.Interface
}
