package apiserver

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/nlproxy/nlproxy/integration/cluster"
	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/objects"
)

// taken makes a port of the node one that nothing else can be served on.
func (r *rig) taken(t *testing.T, port int) {
	t.Helper()
	l, err := r.Self.Namespace.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
}

func TestStartAndBrokenHealthChecksAreEvents(t *testing.T) {
	const port = 30999
	r := newRig(t)
	r.taken(t, port)
	s := objects.Service{Name: "unhealthy", Number: 1, Type: corev1.ServiceTypeLoadBalancer}.Object()
	s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	s.Spec.HealthCheckNodePort = port
	r.Create(t, []byte(objects.YAML(t, s)))
	d := daemon.Start(t, r.Options(t, cluster.KubeProxy, minSyncPeriod))
	d.Synchronised(t)
	got := r.AwaitEvents(t, "nlproxy-"+objects.Here, "Starting", "FailedToStartServiceHealthcheck")
	if regarding := got["Starting"].Regarding; regarding.Kind != "Node" || regarding.Name != objects.Here {
		t.Errorf("Starting is about %+v", regarding)
	}
	failed := got["FailedToStartServiceHealthcheck"]
	if failed.Regarding.Kind != "Service" || failed.Regarding.Name != "unhealthy" || failed.Namespace != "default" ||
		!strings.Contains(failed.Note, fmt.Sprintf("port %d", port)) {
		t.Errorf("%+v", failed)
	}
}

// TestLastEventSaysWhyTheDaemonEnds has an address that is in use already, and
// is what the daemon must have.
func TestLastEventSaysWhyTheDaemonEnds(t *testing.T) {
	r := newRig(t)
	r.taken(t, 10249)
	o := r.Options(t, cluster.KubeProxy, minSyncPeriod)
	o.Config += "bindAddressHardFail: true\n"
	d := daemon.Start(t, o)
	if code := d.ExitCode(t); code != 1 {
		t.Errorf("ended with code %d", code)
	}
	failed := r.AwaitEvents(t, "nlproxy-"+objects.Here, "FailedToStartMetricServer")["FailedToStartMetricServer"]
	if failed.Regarding.Name != objects.Here || !strings.Contains(failed.Note, "10249") {
		t.Errorf("%+v", failed)
	}
}
