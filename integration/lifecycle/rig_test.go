package lifecycle

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
)

func TestMain(m *testing.M) {
	daemon.Build()
	labtest.Main(m)
}

// A rig is a node with servers at every pod, and a folder of manifests for the
// daemon.
type rig struct {
	*lab.Node
	manifests string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{
		Node:      labtest.Node(t, lab.Options{Namespace: labtest.Namespace(t), Pods: 3}),
		manifests: t.TempDir(),
	}
	for _, place := range append(r.Pods, r.Remote...) {
		labtest.Serve(t, place, "tcp", objects.TargetPort)
		labtest.Serve(t, place, "udp", objects.TargetPort)
	}
	write(t, filepath.Join(r.manifests, "node.yaml"), objects.YAML(t, objects.Node()))
	return r
}

// put makes a file of manifests, at once.
func (r *rig) put(t *testing.T, name, content string) {
	t.Helper()
	partial := filepath.Join(r.manifests, name+".partial")
	write(t, partial, content)
	if err := os.Rename(partial, filepath.Join(r.manifests, name)); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// start starts a daemon on r's node.
func (r *rig) start(t *testing.T) *daemon.Daemon {
	t.Helper()
	return daemon.Start(t, daemon.Options{
		Namespace: r.Self.Namespace,
		Config:    daemon.Configuration(10 * time.Millisecond),
		Manifests: r.manifests,
	})
}

// balanced is a service for everybody, over endpoints here and elsewhere.
func (r *rig) balanced() objects.Service {
	return objects.Service{
		Name: "web", Number: 1, Type: "NodePort",
		Endpoints: objects.At(r.Pods[1], r.Pods[2], r.Remote[0]),
	}
}

// probe probes s 200 times a second: by its ClusterIP from a pod, and by its
// node port from outside.
func (r *rig) probe(s objects.Service) labtest.Probes {
	return labtest.Probes{
		r.Pods[0].Probe("tcp", s.ClusterIP(), lab.ProbeOptions{Rate: 100}),
		r.Outside.Probe("tcp", s.NodePort(r.Self.IPv4()), lab.ProbeOptions{Rate: 100}),
	}
}
