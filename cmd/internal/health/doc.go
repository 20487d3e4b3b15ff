// Package health answers whether this node's rules are fit for traffic: to
// whoever watches the node (Server), and to the load balancer of each service
// with an external traffic policy Local (Ports).
//
// Guarantees:
//   - Paths, status codes, headers and bodies are those of kube-proxy 1.37.
//   - An answer is never better than the rules: a service that is gone, that
//     has no ready endpoint here any more, or whose rules cannot be written is
//     answered for with 503 from the moment of which Server and Ports are told
//     on, also to requests that are under way.
//   - Nothing but Ports.Run waits for sockets, and each that it opened is closed
//     when it returns. A port that cannot be opened costs only itself, and is
//     tried again until it can.
//   - All methods may be called at any time from any goroutine; Run once.
package health
