// Package metrics holds the tests of what the daemon serves on its metrics
// address, beside the real kube-proxy.
package metrics
