package lifecycle

import (
	"os"
	"testing"
	"time"

	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
)

func TestServesFromAnEmptyFileSystemWithoutAnyChildProcess(t *testing.T) {
	r := newRig(t)
	root := daemon.NewRoot(t)
	web := r.balanced()
	root.Write(t, "manifests/node.yaml", objects.YAML(t, objects.Node()))
	root.Write(t, "manifests/web.yaml", objects.Documents(t, web))
	d := daemon.Start(t, daemon.Options{
		Namespace: r.Self.Namespace,
		Config:    daemon.Configuration(10 * time.Millisecond),
		Manifests: "/manifests",
		Root:      root,
	})
	d.Synchronised(t)
	d.CheckNoChild(t)
	labtest.Answers(t, r.Pods[0], "tcp", web.ClusterIP(), "pod-2", "pod-3", "remote-1")
	labtest.Answers(t, r.Outside, "tcp", web.NodePort(r.Self.IPv4()), "pod-2", "pod-3", "remote-1")

	web.Endpoints = objects.At(r.Remote[1])
	root.Write(t, "manifests/web.yaml", objects.Documents(t, web))
	labtest.Becomes(t, r.Pods[0], "tcp", web.ClusterIP(), labtest.By("remote-2"))
	d.CheckNoChild(t)
	checkOnly(t, root, "config.yaml", "manifests", "nlproxy", "proc", "sys")
	d.Stop(t)
	labtest.Answers(t, r.Outside, "tcp", web.NodePort(r.Self.IPv4()), "remote-2")
}

// checkOnly fails t unless these are all files in root.
func checkOnly(t *testing.T, root *daemon.Root, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(root.Path("/"))
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range entries {
		if i >= len(names) || e.Name() != names[i] {
			t.Errorf("in the empty file system is %s", e.Name())
		}
	}
}
