package watch

import (
	"net/netip"
	"slices"
	"time"
	"unique"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// slice is what matters of an EndpointSlice.
type slice struct {
	name      model.Name
	service   model.Name
	family    model.Family
	ports     []slicePort
	endpoints []backend
	// triggered is when the last change was asked for; zero if that is not known.
	triggered time.Time
}

// slicePort is a port on which every endpoint of a slice serves.
type slicePort struct {
	model.PortKey
	number uint16
}

// backend is one endpoint of a slice. It holds handles, so that the names of
// nodes, which many endpoints share, are in memory once.
type backend struct {
	addr        netip.Addr
	node        unique.Handle[string]
	hints       *hints
	ready       bool
	serving     bool
	terminating bool
}

// hints are for whom an endpoint is meant. Endpoints of one slice with equal
// hints share them.
type hints struct {
	zones []string
	nodes []string
}

func (s *slice) equal(o *slice) bool {
	if s == nil || o == nil {
		return s == o
	}
	return s.name == o.name && s.service == o.service && s.family == o.family &&
		s.triggered.Equal(o.triggered) &&
		slices.Equal(s.ports, o.ports) &&
		slices.EqualFunc(s.endpoints, o.endpoints, backend.equal)
}

func (b backend) equal(o backend) bool {
	return b.addr == o.addr && b.node == o.node && b.hints.equal(o.hints) &&
		b.ready == o.ready && b.serving == o.serving && b.terminating == o.terminating
}

func (h *hints) equal(o *hints) bool {
	if h == nil || o == nil {
		return h == o
	}
	return slices.Equal(h.zones, o.zones) && slices.Equal(h.nodes, o.nodes)
}

// on returns the endpoint that b is on a port.
func (b backend) on(port uint16) model.Endpoint {
	e := model.Endpoint{
		Addr:        netip.AddrPortFrom(b.addr, port),
		Ready:       b.ready,
		Serving:     b.serving,
		Terminating: b.terminating,
		Node:        b.node.Value(),
	}
	if b.hints != nil {
		e.Zones, e.Nodes = b.hints.zones, b.hints.nodes
	}
	return e
}
