package lifecycle

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
)

// other is a service at one place.
func other(at *lab.Place) objects.Service {
	return objects.Service{Name: "other", Number: 2, Endpoints: objects.At(at)}
}

// becomes waits until a service is what a file says: served at a place or, if
// that is empty, by nobody.
func (r *rig) becomes(t *testing.T, to netip.AddrPort, place string) {
	t.Helper()
	right := labtest.By(place)
	if place == "" {
		right = labtest.Ends(lab.Unreachable)
	}
	labtest.Becomes(t, r.Pods[0], "tcp", to, right)
}

// running is a rig whose daemon serves a service that is probed meanwhile.
func running(t *testing.T) (*rig, *daemon.Daemon, objects.Service) {
	t.Helper()
	r := newRig(t)
	web := r.balanced()
	r.put(t, "web.yaml", objects.Documents(t, web))
	d := r.start(t)
	d.Synchronised(t)
	probing := r.probe(web)
	t.Cleanup(func() { t.Logf("%d probes", probing.Stop(t)) })
	return r, d, web
}

func TestFilesThatComeChangeAndGoAreFollowed(t *testing.T) {
	r, _, _ := running(t)
	to := other(r.Pods[1]).ClusterIP()
	file := func(name string) string { return filepath.Join(r.manifests, name) }
	at := func(i int) string { return objects.Documents(t, other(r.Pods[i])) }
	remove := func(name string) {
		if err := os.Remove(file(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name   string
		do     func()
		served string
	}{
		{"written in place", func() { write(t, file("a.yaml"), at(1)) }, "pod-2"},
		{"changed in place", func() { write(t, file("a.yaml"), at(2)) }, "pod-3"},
		{"renamed over it", func() { r.put(t, "a.yaml", at(1)) }, "pod-2"},
		{"a second one that comes later in the order", func() { r.put(t, "b.yaml", at(2)); remove("a.yaml") }, "pod-3"},
		{"removed", func() { remove("b.yaml") }, ""},
		{"renamed to be a manifest", func() {
			write(t, file("c.txt"), at(1))
			if err := os.Rename(file("c.txt"), file("c.yml")); err != nil {
				t.Fatal(err)
			}
		}, "pod-2"},
	} {
		t.Log(step.name)
		step.do()
		r.becomes(t, to, step.served)
	}
}

// TestLinksThatAreSwappedAreFollowed does as the kubelet does with a volume of
// a ConfigMap: files are links into ..data, which is a link to a folder.
func TestLinksThatAreSwappedAreFollowed(t *testing.T) {
	r, _, _ := running(t)
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(r.manifests, name)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		version := fmt.Sprintf("..version-%d", i)
		if err := os.Mkdir(filepath.Join(r.manifests, version), 0o755); err != nil {
			t.Fatal(err)
		}
		s := other(r.Pods[1+i%2])
		write(t, filepath.Join(r.manifests, version, "other.yaml"), objects.Documents(t, s))
		link(version, "..data_tmp")
		if err := os.Rename(filepath.Join(r.manifests, "..data_tmp"), filepath.Join(r.manifests, "..data")); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			link("..data/other.yaml", "other.yaml")
		}
		r.becomes(t, s.ClusterIP(), r.Pods[1+i%2].Name)
	}
}

// TestWhatABrokenFileSaidBeforeStaysInForce breaks the file of the service that
// is probed, in every way that a file can be broken.
func TestWhatABrokenFileSaidBeforeStaysInForce(t *testing.T) {
	r, d, web := running(t)
	good := objects.Documents(t, web)
	for _, broken := range []struct{ name, text, problem string }{
		// The documents begin at lines 2 and 4.
		{"half written", good[:strings.Index(good, `"spec"`)], "web.yaml:2: "},
		{"a bad value", strings.Replace(good, `"port":80`, `"port":70000`, 1), "web.yaml:2: service default/web: spec.ports[0].port: "},
		{"a field that is none", strings.Replace(good, `"addressType"`, `"addresType"`, 1), "web.yaml:4: endpointslice default/web-1: "},
		{"bad syntax at the end", good + "---\napiVersion: v1\nkind: Service\n metadata: {}\n", "web.yaml:8: "},
	} {
		write(t, filepath.Join(r.manifests, "web.yaml"), broken.text)
		e := d.Await(t, broken.problem, func(e daemon.Entry) bool { return strings.HasPrefix(e.Message, broken.problem) })
		t.Logf("%s: %s: %s", broken.name, e.Level, e.Message)
		labtest.Answers(t, r.Pods[0], "tcp", web.ClusterIP(), "pod-2", "pod-3", "remote-1")
		// Others are not affected, and tell that the file was read.
		r.put(t, "other.yaml", objects.Documents(t, other(r.Pods[1])))
		r.becomes(t, other(r.Pods[1]).ClusterIP(), "pod-2")
		if err := os.Remove(filepath.Join(r.manifests, "other.yaml")); err != nil {
			t.Fatal(err)
		}
		r.becomes(t, other(r.Pods[1]).ClusterIP(), "")
		labtest.Answers(t, r.Pods[0], "tcp", web.ClusterIP(), "pod-2", "pod-3", "remote-1")
	}
	web.Endpoints = objects.At(r.Remote[1])
	write(t, filepath.Join(r.manifests, "web.yaml"), objects.Documents(t, web))
	r.becomes(t, web.ClusterIP(), "remote-2")
}
