package watch

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// candidate is an endpoint and the text by which endpoints are ordered.
type candidate struct {
	text     string
	endpoint model.Endpoint
}

// merge returns the endpoints of each of a service's ports, out of the slices
// behind it.
//
// An address and port that is there more than once counts once: an endpoint
// may be in two slices while it moves, and a pod may have the address of one
// that is still terminating. The better one counts, whatever the order of
// slices. Endpoints are ordered by "address:port" as text, as kube-proxy does
// it (pkg/proxy/endpointslicecache.go, 1.37), because the place of an endpoint
// shows in the rules.
func merge(ports []model.Port, from []*slice) map[model.PortKey][]model.Endpoint {
	if len(from) == 0 {
		return nil
	}
	merged := make(map[model.PortKey][]model.Endpoint, len(ports))
	for _, p := range ports {
		if found := candidates(p.PortKey, from); len(found) > 0 {
			merged[p.PortKey] = best(found)
		}
	}
	return merged
}

func candidates(key model.PortKey, from []*slice) []candidate {
	var found []candidate
	for _, s := range from {
		for _, p := range s.ports {
			if p.PortKey != key {
				continue
			}
			for _, b := range s.endpoints {
				e := b.on(p.number)
				found = append(found, candidate{e.Addr.String(), e})
			}
		}
	}
	return found
}

// best sorts the candidates and leaves one of each address and port.
func best(found []candidate) []model.Endpoint {
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(strings.Compare(a.text, b.text), prefer(a.endpoint, b.endpoint))
	})
	endpoints := make([]model.Endpoint, 0, len(found))
	for _, c := range found {
		if n := len(endpoints); n == 0 || endpoints[n-1].Addr != c.endpoint.Addr {
			endpoints = append(endpoints, c.endpoint)
		}
	}
	return slices.Clip(endpoints)
}

// prefer is negative if a counts rather than b, where both have the same
// address: a living one, then one in better condition. The rest is there to
// make the choice the same every time.
func prefer(a, b model.Endpoint) int {
	return cmp.Or(
		first(!a.Terminating, !b.Terminating),
		first(a.Ready, b.Ready),
		first(a.Serving, b.Serving),
		strings.Compare(a.Node, b.Node),
		slices.Compare(a.Zones, b.Zones),
		slices.Compare(a.Nodes, b.Nodes),
	)
}

func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
