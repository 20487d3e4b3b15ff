package plan

import (
	"net/netip"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// HealthCheck returns the port on which balancers ask whether this node can
// serve s in the plan's family, on the addresses of Frame.NodePorts: 0 for none.
func (s Service) HealthCheck() (port uint16) {
	if len(s.Ports) == 0 {
		return 0
	}
	return s.Ports[0].HealthCheckNodePort // which is that of the service
}

// readyHere counts the addresses of ready endpoints on this node. Several ports
// on one address count once, and one that is terminating counts no more, though
// it may still serve: so does kube-proxy 1.37 (LocalReadyEndpoints,
// pkg/proxy/endpointschangetracker.go).
func (d decider) readyHere(svc *model.Service) int {
	here := on(d.node.Name)
	found := map[netip.Addr]bool{}
	for _, port := range svc.Ports {
		for _, ep := range inState(ofFamily(svc.Endpoints[port.PortKey], d.family), ready, here) {
			found[ep.Addr()] = true
		}
	}
	return len(found)
}
