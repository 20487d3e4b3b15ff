package health

import (
	"fmt"
	"net"
	"net/http"
	"strconv"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// asked is the key of a request's context that holds the *check it is about.
type asked struct{}

// answer answers a balancer, whatever the path and the method: with 200 if new
// connections may come, and with the number of endpoints to weigh this node by.
func (p *Ports) answer(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(asked{}).(*check)
	ready, current, aside := p.state(c, familyOf(r))
	healthy := p.opts.Healthy() && !aside
	code := http.StatusServiceUnavailable
	if ready > 0 && healthy {
		code = http.StatusOK
	}
	header(w)
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", strconv.Itoa(ready))
	if !current { // another service may be asked for on this port from now on
		w.Header().Set("Connection", "close")
	}
	w.WriteHeader(code)
	fmt.Fprintf(w, portBody, c.service.Namespace, c.service.Name, ready, healthy)
}

// portBody is laid out as kube-proxy does it (hcHandler,
// pkg/proxy/healthcheck/service_health.go, 1.37).
const portBody = `{
	"service": {
		"namespace": %q,
		"name": %q
	},
	"localEndpoints": %d,
	"serviceProxyHealthy": %t
}`

// familyOf returns the family of the address that a request came to.
func familyOf(r *http.Request) model.Family {
	local := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return model.FamilyOf(local.AddrPort().Addr())
}
