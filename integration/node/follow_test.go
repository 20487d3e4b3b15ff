package node

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
)

// The addresses of the node's link, and the ranges of its own pods and others.
var (
	first, second = netip.MustParseAddr("192.168.7.1"), netip.MustParseAddr("192.168.8.1")
)

const ownPods, otherPods = "10.244.1.0/24", "10.244.2.0/24"

// web is a service with one endpoint for each zone: pod-2 for a, remote-1 for b.
func (r *rig) web(t *testing.T) objects.Service {
	t.Helper()
	web := objects.Service{Name: "web", Number: 1, Type: corev1.ServiceTypeNodePort, Endpoints: objects.At(r.Pods[1], r.Remote[0])}
	slice := web.Slice()
	for i, zone := range []string{"a", "b"} {
		slice.Endpoints[i].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: zone}}}
	}
	r.Create(t, []byte(objects.YAML(t, web.Object(), slice)))
	return web
}

// expect waits until node ports are served on one address and not on the other,
// by a place, and a pod's connections arrive with its own address, or not.
func (r *rig) expect(t *testing.T, web objects.Service, served, not netip.Addr, by string, masqueraded bool) {
	t.Helper()
	labtest.Becomes(t, r.Outside, "tcp", web.NodePort(served), labtest.By(by))
	labtest.Becomes(t, r.Outside, "tcp", web.NodePort(not), labtest.Ends(lab.Refused))
	pod := r.Pods[0]
	labtest.Becomes(t, pod, "tcp", web.ClusterIP(), func(o lab.Outcome) bool {
		return o.By == by && (o.Source.Addr() != pod.IPv4()) == masqueraded
	})
}

func TestRulesFollowTheNode(t *testing.T) {
	r := newRig(t)
	r.createNode(t, zoned("a", first.String(), ownPods))
	web := r.web(t)
	d := daemon.Start(t, r.options(t, strict...))
	r.expect(t, web, first, second, "pod-2", false)
	probing := labtest.Probes{r.Pods[0].Probe("tcp", web.ClusterIP(), lab.ProbeOptions{Rate: 200})}

	r.patch(t, `{"metadata":{"labels":{"topology.kubernetes.io/zone":"b"}}}`)
	r.expect(t, web, first, second, "remote-1", false)

	r.patch(t, fmt.Sprintf(`{"status":{"addresses":[{"type":"InternalIP","address":%q}]}}`, second), "status")
	r.expect(t, web, second, first, "remote-1", false)

	// All at once, while the daemon is held and its watch lost: a range of
	// pods changes only with a new Node.
	signal(t, d, unix.SIGSTOP)
	r.deleteNode(t)
	r.createNode(t, zoned("a", first.String(), otherPods))
	r.KillAPIServer()
	r.StartAPIServer(t)
	signal(t, d, unix.SIGCONT)
	r.expect(t, web, first, second, "pod-2", true)

	signal(t, d, unix.SIGSTOP)
	r.deleteNode(t)
	r.createNode(t, zoned("b", first.String(), otherPods))
	r.deleteNode(t)
	r.createNode(t, zoned("b", second.String(), ownPods))
	signal(t, d, unix.SIGCONT)
	r.expect(t, web, second, first, "remote-1", false)
	t.Logf("%d probes", probing.Stop(t))
}

// patch changes the Node.
func (r *rig) patch(t *testing.T, patch string, subresources ...string) {
	t.Helper()
	_, err := r.admin.CoreV1().Nodes().Patch(t.Context(), objects.Here, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	if err != nil {
		t.Fatal(err)
	}
}

func signal(t *testing.T, d *daemon.Daemon, s unix.Signal) {
	t.Helper()
	if err := d.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// saying matches what d logs.
func saying(text string) func(daemon.Entry) bool {
	return func(e daemon.Entry) bool { return strings.Contains(e.Line, text) }
}

// TestADeletedNodeTakesNothingAway deletes the Node, and makes it anew without
// what rules depend on, as a kubelet may that has to wait for its cloud.
func TestADeletedNodeTakesNothingAway(t *testing.T) {
	r := newRig(t)
	r.createNode(t, zoned("a", first.String(), ownPods))
	web := r.web(t)
	d := daemon.Start(t, r.options(t, strict...))
	r.expect(t, web, first, second, "pod-2", false)
	r.healthz(t, http.StatusOK)
	generation := daemon.Generation(t, r.Self.Namespace)
	unchanged := func(when string) {
		t.Helper()
		if now := daemon.Generation(t, r.Self.Namespace); now != generation {
			t.Errorf("%s: generation %d, before %d", when, now, generation)
		}
	}

	r.deleteNode(t)
	gone := d.Await(t, "that the node is gone", saying("node node1: does not exist"))
	unchanged("deleted")
	r.healthz(t, http.StatusServiceUnavailable)
	bare := objects.Node()
	bare.Labels = map[string]string{corev1.LabelTopologyZone: "a"}
	bare.Spec, bare.Status = corev1.NodeSpec{}, corev1.NodeStatus{}
	r.createNode(t, bare)
	d.Await(t, "that it has no address", saying("node node1: status.addresses: has no IP address"))
	d.Await(t, "that it has no range of pods", saying("node node1: spec.podCIDRs: has no range"))
	r.expect(t, web, first, second, "pod-2", false)
	unchanged("made anew")

	r.patch(t, fmt.Sprintf(`{"status":{"addresses":[{"type":"InternalIP","address":%q}]}}`, second), "status")
	r.expect(t, web, second, first, "pod-2", false)
	r.healthz(t, http.StatusOK)
	r.patch(t, fmt.Sprintf(`{"spec":{"podCIDR":%q,"podCIDRs":[%q]}}`, otherPods, otherPods))
	r.expect(t, web, second, first, "pod-2", true)
	t.Log(gone.Line)
}

// healthz checks what load balancers are told of the node.
func (r *rig) healthz(t *testing.T, want int) {
	t.Helper()
	got := labtest.Get(t, r.Self.Namespace, "http://127.0.0.1:10256/healthz")
	if got.Status != want {
		t.Errorf("healthz is %d, want %d: %s", got.Status, want, got.Body)
	}
}

// TestANodeThatIsNotCompleteIsWaitedFor starts two daemons at once: the Node of
// one has no address, and that of the other, named by the host, does not exist.
func TestANodeThatIsNotCompleteIsWaitedFor(t *testing.T) {
	r := newRig(t)
	bare := objects.Node()
	bare.Status = corev1.NodeStatus{}
	r.createNode(t, bare)
	web := r.web(t)
	unaddressed := daemon.Start(t, r.options(t))
	nameless := daemon.Start(t, r.options(t, "hostnameOverride: node1\n", ""))

	if code := nameless.ExitCode(t); code != 1 {
		t.Errorf("without a Node it ended with code %d", code)
	}
	entries := nameless.Entries()
	last := entries[len(entries)-1].Line
	for _, want := range []string{"there is no node ", "this host's", "--hostname-override"} {
		if !strings.Contains(last, want) {
			t.Errorf("the last line does not say %q: %s", want, last)
		}
	}
	warning := unaddressed.Await(t, "that it goes on", saying("goes on without this node's addresses"))
	labtest.Becomes(t, r.Outside, "tcp", web.NodePort(first), labtest.By("pod-2", "remote-1"))
	t.Logf("%s\n%s", last, warning.Line)
}
