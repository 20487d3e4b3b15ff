//go:build tools

package peers

// The commands that are built from other modules, imported so that go.mod
// keeps what they need.
import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-proxy"
)
