// Package takeover holds the tests in which a node goes from kube-proxy to
// nlproxy and back while it serves.
package takeover
