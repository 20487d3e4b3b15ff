package iptables

import (
	"crypto/sha256"
	"encoding/base32"
	"net/netip"
	"strings"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"github.com/nlproxy/nlproxy/dataplane/rules"
)

// The tables that the chains are in.
const (
	natTable    = "nat"
	filterTable = "filter"
	mangleTable = "mangle"
)

// The chains that no single service has. Some names are in both tables.
const (
	services         = "KUBE-SERVICES"
	externalServices = "KUBE-EXTERNAL-SERVICES"
	nodePorts        = "KUBE-NODEPORTS"
	postrouting      = "KUBE-POSTROUTING"
	markMasq         = "KUBE-MARK-MASQ"
	forward          = "KUBE-FORWARD"
	proxyFirewall    = "KUBE-PROXY-FIREWALL"
	// firewall is shared with the kubelet.
	firewall = "KUBE-FIREWALL"
	// canary is what kube-proxy watches to learn of a flush. Nobody needs it
	// once kube-proxy is gone.
	canary = "KUBE-PROXY-CANARY"
)

// The beginnings of the names of chains that a service port has.
const (
	svcPrefix = "KUBE-SVC-" // spreads over the Cluster pool
	svlPrefix = "KUBE-SVL-" // spreads over the Local pool
	extPrefix = "KUBE-EXT-" // external traffic
	fwPrefix  = "KUBE-FW-"  // source ranges
	sepPrefix = "KUBE-SEP-" // one endpoint
)

var servicePrefixes = [...]string{svcPrefix, svlPrefix, extPrefix, fwPrefix, sepPrefix}

// kinds of the chains with fixed names, by table.
var kinds = map[string]map[string]rules.Kind{
	natTable: {
		services: rules.Shared, nodePorts: rules.Shared,
		postrouting: rules.Private, markMasq: rules.Private, canary: rules.Private,
		"PREROUTING": rules.Lent, "OUTPUT": rules.Lent, "POSTROUTING": rules.Lent,
	},
	filterTable: {
		services: rules.Shared, externalServices: rules.Shared,
		nodePorts: rules.Shared, proxyFirewall: rules.Shared,
		forward: rules.Private, canary: rules.Private,
		firewall: rules.Lent, "INPUT": rules.Lent, "FORWARD": rules.Lent, "OUTPUT": rules.Lent,
	},
	mangleTable: {canary: rules.Private},
}

// hooks of the base chains: netfilter hook numbers of linux/netfilter.h and the
// priorities that iptables-nft 1.8.9 gives them.
var hooks = map[string]map[string]rules.Hook{
	natTable: {
		"PREROUTING":  {Type: "nat", Number: 0, Priority: -100},
		"OUTPUT":      {Type: "nat", Number: 3, Priority: -100},
		"POSTROUTING": {Type: "nat", Number: 4, Priority: 100},
	},
	filterTable: {
		"INPUT":   {Type: "filter", Number: 1, Priority: 0},
		"FORWARD": {Type: "filter", Number: 2, Priority: 0},
		"OUTPUT":  {Type: "filter", Number: 3, Priority: 0},
	},
}

// Unhooked reports whether a chain that exists is one from which our rules are
// to be reached, and packets do not come there: it has the name of a base chain
// and is none, or one of another hook.
func Unhooked(c rules.ListedChain) bool {
	want, ok := hooks[c.ID.Table.Name][c.ID.Name]
	return ok && (c.Hook == nil || c.Hook.Type != want.Type || c.Hook.Number != want.Number)
}

// Canary is the chain in nat by which a running kube-proxy learns of a flush.
func Canary(f model.Family) rules.ChainID { return chain(f, natTable, canary).ID }

// Tables lists the tables of both families in which there may be chains of ours.
func Tables() []rules.Table {
	var all []rules.Table
	for _, f := range model.Families {
		for _, name := range [...]string{natTable, filterTable, mangleTable} {
			all = append(all, rules.Table{Family: f, Name: name})
		}
	}
	return all
}

// Classify tells whose a chain is: see rules.Classify.
func Classify(id rules.ChainID) (rules.Kind, bool) {
	if kind, ok := kinds[id.Table.Name][id.Name]; ok {
		return kind, true
	}
	if id.Table.Name == natTable {
		for _, prefix := range servicePrefixes {
			if strings.HasPrefix(id.Name, prefix) {
				return rules.Private, true
			}
		}
	}
	return 0, false
}

// chain returns the chain with a fixed name.
func chain(f model.Family, table, name string) rules.Chain {
	c := rules.Chain{
		ID:   rules.ChainID{Table: rules.Table{Family: f, Name: table}, Name: name},
		Kind: kinds[table][name],
	}
	if h, ok := hooks[table][name]; ok {
		c.Hook = &h
	}
	return c
}

// names are the names of the chains of one service port.
type names struct {
	port plan.Port
	hash string
}

func namesOf(p plan.Port) names { return names{p, hash(p.Name.String() + p.Name.Protocol.String())} }

func (n names) svc() string { return svcPrefix + n.hash }
func (n names) svl() string { return svlPrefix + n.hash }
func (n names) ext() string { return extPrefix + n.hash }
func (n names) fw() string  { return fwPrefix + n.hash }

func (n names) sep(ep netip.AddrPort) string {
	return sepPrefix + hash(n.port.Name.String()+n.port.Name.Protocol.String()+ep.String())
}

// hash makes the part of a chain's name that tells it from others: 80 bits, so
// that names keep to the 28 characters of xtables.
func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base32.StdEncoding.EncodeToString(sum[:10])
}
