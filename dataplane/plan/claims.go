package plan

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// claims remembers which service port claims which destination.
type claims struct {
	// held are the destinations that a service claims, for when it lets go.
	held map[model.Name][]destination
	// by has more than one claim only for a contested destination.
	by map[destination][]claim
}

// destination is a frontend as packets show it.
type destination struct {
	addr     netip.Addr // not valid for a node port
	port     uint16
	protocol model.Protocol
}

// claim is a service port's wish for a destination.
type claim struct {
	name model.PortName
	// cluster says that it is the service's cluster IP, which nobody else's
	// external or load-balancer IP may take over.
	cluster bool
}

func newClaims() claims {
	return claims{held: map[model.Name][]destination{}, by: map[destination][]claim{}}
}

func destinationOf(f Frontend, proto model.Protocol) destination {
	return destination{f.Addr, f.Port, proto}
}

// before reports whether c wins over o: cluster IPs win, then the service
// first by namespace and name, then by the port's name.
func (c claim) before(o claim) bool {
	if c.cluster != o.cluster {
		return c.cluster
	}
	if by := c.name.Name.Compare(o.name.Name); by != 0 {
		return by < 0
	}
	return strings.Compare(c.name.Port, o.name.Port) < 0
}

// set replaces what a service claims by the frontends of ports, and returns
// the other services that this bears on.
func (c claims) set(name model.Name, ports []Port) []model.Name {
	var others []model.Name
	note := func(d destination) {
		for _, rival := range c.by[d] {
			if rival.name.Name != name {
				others = append(others, rival.name.Name)
			}
		}
	}
	for _, d := range c.held[name] {
		c.release(d, name)
		note(d)
	}
	delete(c.held, name)
	for _, p := range ports {
		for _, f := range p.Frontends {
			d := destinationOf(f, p.Name.Protocol)
			note(d)
			c.held[name] = append(c.held[name], d)
			c.by[d] = append(c.by[d], claim{p.Name, f.Kind == ClusterIP})
		}
	}
	return others
}

func (c claims) release(d destination, name model.Name) {
	left := slices.DeleteFunc(c.by[d], func(cl claim) bool { return cl.name.Name == name })
	if len(left) == 0 {
		delete(c.by, d)
		return
	}
	c.by[d] = left
}

// winner returns the claim that d belongs to, of which one is known.
func (c claims) winner(d destination, best claim) claim {
	for _, cl := range c.by[d] {
		if cl.before(best) {
			best = cl
		}
	}
	return best
}

// concede takes from p the frontends that others won, and names them.
func (c claims) concede(p *Port) []Conflict {
	var lost []Conflict
	p.Frontends = slices.DeleteFunc(p.Frontends, func(f Frontend) bool {
		own := claim{p.Name, f.Kind == ClusterIP}
		winner := c.winner(destinationOf(f, p.Name.Protocol), own).name
		if winner == p.Name {
			return false
		}
		lost = append(lost, Conflict{f, p.Name.Protocol, winner, p.Name})
		return true
	})
	return lost
}
