// Package metrics shows what the layers below do, in Prometheus' text format.
//
// Guarantees:
//   - There is no global registry: each Metrics has its own, and two of them
//     know nothing of each other.
//   - What the kernel knows is read at each scrape and is as old as the scrape.
//     If it cannot be read, its metrics are missing and the others are served.
//   - All methods may be called at any time from any goroutine, and none waits
//     for the kernel or the network, except a scrape.
package metrics
