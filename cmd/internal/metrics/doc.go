// Package metrics shows what the layers below do, in Prometheus' text format,
// and answers what else kube-proxy answers on its metrics address.
//
// What kube-proxy 1.37 has in iptables mode has its name, type, labels and
// buckets, and changes when kube-proxy's does. Three things differ:
//   - Both families are written in one transaction, so a duration or a failure
//     is said of both.
//   - A changed Service counts once and not once for each family.
//   - What could not be made true at first is measured when it is, where
//     kube-proxy forgets when it was asked for.
//
// Guarantees:
//   - There is no global registry: each Metrics has its own, and two of them
//     know nothing of each other.
//   - What the kernel knows is read at each scrape and is as old as the scrape.
//     If it cannot be read, its metrics are missing and the others are served.
//   - All methods may be called at any time from any goroutine, and none waits
//     for the kernel or the network, except a scrape.
package metrics
