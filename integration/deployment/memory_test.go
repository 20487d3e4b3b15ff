package deployment

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
)

// What an edge node can spare.
const (
	binaryLimit   = 32_000_000 // bytes
	residentLimit = 25_000     // kB
	servicesThere = 10
)

func TestBinaryIsSmall(t *testing.T) {
	binary := filepath.Join(daemon.TheImage(t).Root, "usr/local/bin/nlproxy")
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > binaryLimit {
		t.Errorf("the stripped binary has %d bytes, more than %d", info.Size(), binaryLimit)
	}
	t.Logf("stripped binary: %.1f MB", float64(info.Size())/1e6)
}

// use is what a process takes of a node.
type use struct {
	resident, anonymous, file, peak int // kB
	cpu                             time.Duration
	binary                          int64
}

func (u use) String() string {
	return fmt.Sprintf("resident %d kB (anonymous %d, of files %d), at most %d; binary %.1f MB",
		u.resident, u.anonymous, u.file, u.peak, float64(u.binary)/1e6)
}

func useOf(t *testing.T, pid int) (u use) {
	t.Helper()
	status := readStatus(t, pid)
	for field, to := range map[string]*int{"VmRSS": &u.resident, "RssAnon": &u.anonymous, "RssFile": &u.file, "VmHWM": &u.peak} {
		n, err := strconv.Atoi(strings.TrimSuffix(status[field], " kB"))
		if err != nil {
			t.Fatalf("%s of process %d: %v", field, pid, err)
		}
		*to = n
	}
	info, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		t.Fatal(err)
	}
	u.binary = info.Size()
	process, err := procfs.NewProc(pid)
	if err != nil {
		t.Fatal(err)
	}
	stat, err := process.Stat()
	if err != nil {
		t.Fatal(err)
	}
	u.cpu = time.Duration(stat.CPUTime() * float64(time.Second))
	return u
}

// changes are how many changes are made before it is measured what serving
// takes.
const changes = 10

// TestWhatAPodNeeds measures kube-proxy and then nlproxy, which takes over its
// rules: with few services, after some changes, scrapes and probes.
func TestWhatAPodNeeds(t *testing.T) {
	r := newRig(t)
	var services []objects.Service
	for i := range servicesThere {
		services = append(services, objects.Service{
			Name: fmt.Sprintf("service-%d", i), Number: 1 + i, Type: corev1.ServiceTypeNodePort,
			Endpoints: objects.At(r.Pods[1], r.Remote[0]),
		})
	}
	r.Create(t, []byte(objects.Documents(t, services...)))
	all := decoded(t, manifest(t, shipped()...))
	r.apply(t, all)

	peer := r.StartKubeProxy(t, []byte(daemon.Configuration(0)))
	r.serveFor(t, services)
	theirs := useOf(t, peer.PID())
	peer.Kill()

	d := one[*appsv1.DaemonSet](t, all).Spec.Template.Spec.Containers[0]
	c := newContainer(t, r.volumes(t, one[*corev1.ConfigMap](t, all)), false)
	ran := c.start(t, r.Self.Namespace, command(d))
	r.serveFor(t, services) // some of it by what kube-proxy has left
	started := useOf(t, ran.cmd.Process.Pid)
	r.serveFor(t, services)
	ours := useOf(t, ran.cmd.Process.Pid)
	change := (ours.cpu - started.cpu) / changes
	t.Logf("%d services\nkube-proxy: %s\nnlproxy:    %s; CPU of a change %s", servicesThere, theirs, ours, change)

	if ours.resident > residentLimit {
		t.Errorf("%d kB are resident, more than %d", ours.resident, residentLimit)
	}
	requests := d.Resources.Requests
	if request, most := requests.Memory().Value()/1024, int64(ours.peak); request < most || request > 2*most {
		t.Errorf("the pod requests %d kB, and used %d at most", request, most)
	}
	// There is at most one synchronisation a second.
	if request := time.Duration(requests.Cpu().MilliValue()) * time.Millisecond; request < change {
		t.Errorf("the pod requests %s of CPU a second, and a change takes %s", request, change)
	}
	if len(d.Resources.Limits) > 0 {
		t.Errorf("the pod has limits: %v", d.Resources.Limits)
	}
}

// serveFor makes changes, each of which is served, and asks for metrics and
// health.
func (r *rig) serveFor(t *testing.T, services []objects.Service) {
	t.Helper()
	r.servesAll(t, services)
	last := services[len(services)-1]
	for i := range changes {
		places := []string{"pod-3", "pod-2"}
		last.Endpoints = objects.At(r.Pods[2-i%2])
		r.updateSlice(t, last)
		labtest.Becomes(t, r.Pods[0], "tcp", last.ClusterIP(), labtest.By(places[i%2]))
	}
	last.Endpoints = services[len(services)-1].Endpoints
	r.updateSlice(t, last)
	r.servesAll(t, services)
	for _, url := range []string{"http://127.0.0.1:10249/metrics", "http://127.0.0.1:10256/healthz"} {
		if got := labtest.Get(t, r.Self.Namespace, url); got.Status != http.StatusOK {
			t.Errorf("%s: status %d", url, got.Status)
		}
	}
}

func (r *rig) servesAll(t *testing.T, services []objects.Service) {
	t.Helper()
	for _, s := range services {
		labtest.Becomes(t, r.Pods[0], "tcp", s.ClusterIP(), labtest.By("pod-2", "remote-1"))
	}
}
