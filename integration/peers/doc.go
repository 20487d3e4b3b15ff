// Package peers is a module of its own, so that what only tests need stays out
// of the product's: it pins the real kube-apiserver, kube-proxy and etcd that
// nlproxy is held against.
//
// Nothing imports it. Package cluster builds its commands, which are
// k8s.io/kubernetes/cmd/kube-apiserver, k8s.io/kubernetes/cmd/kube-proxy and
// ./cmd/etcd, with the versions that go.mod and go.sum name.
package peers
