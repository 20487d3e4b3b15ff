// Package site puts together what tests of the running daemon need: a node of
// package lab with a server at every pod, and a real API server that knows it.
package site

import (
	"testing"
	"time"

	"github.com/nlproxy/nlproxy/integration/cluster"
	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
)

// Main is cluster.MainAsRoot for tests that start the daemon.
func Main(m *testing.M) {
	daemon.Build()
	cluster.MainAsRoot(m)
}

// A Site is a node and its API server, which share a namespace.
type Site struct {
	*lab.Node
	*cluster.Cluster
}

// Options say what there is.
type Options struct {
	// Pods and Remote are how many pods there are on the node and elsewhere.
	Pods, Remote int
	// Networks are those on which each pod serves: tcp, udp or sctp.
	Networks []string
	// Unknown leaves it to the test to tell the API server of the Node.
	Unknown bool
}

// New makes a site, which ends with t. With -short t is skipped.
func New(t *testing.T, o Options) *Site {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server, which takes long to build and a while to start")
	}
	ns := labtest.Namespace(t)
	s := &Site{Node: labtest.Node(t, lab.Options{Namespace: ns, Pods: o.Pods, RemotePods: o.Remote})}
	for _, place := range append(s.Pods, s.Remote...) {
		for _, network := range o.Networks {
			labtest.Serve(t, place, network, objects.TargetPort)
		}
	}
	s.Cluster = cluster.Start(t, ns, cluster.Options{Bulk: true})
	if !o.Unknown {
		s.Create(t, []byte(objects.YAML(t, objects.Node())))
	}
	return s
}

// Options are those of a daemon that reads the objects as u.
func (s *Site) Options(t *testing.T, u cluster.User, minSyncPeriod time.Duration) daemon.Options {
	t.Helper()
	return daemon.Options{
		Namespace:  s.Self.Namespace,
		Config:     daemon.Configuration(minSyncPeriod),
		Kubeconfig: s.Kubeconfig(t, u),
	}
}
