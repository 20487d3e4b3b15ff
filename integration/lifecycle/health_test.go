package lifecycle

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
)

const healthPort = "32100"

// checked is a service whose balancer asks each node for endpoints of its own.
func checked(t *testing.T, at *lab.Place) string {
	t.Helper()
	s := objects.Service{Name: "checked", Number: 3, Type: corev1.ServiceTypeLoadBalancer, Endpoints: objects.At(at)}
	o := s.Object()
	o.Spec.ExternalTrafficPolicy, o.Spec.HealthCheckNodePort = corev1.ServiceExternalTrafficPolicyLocal, 32100
	return objects.YAML(t, o, s.Slice())
}

func TestAHealthPortAnswersOnceItCanBeOpened(t *testing.T) {
	r, d, _ := running(t)
	taken, err := r.Self.Namespace.Listen("tcp", "[::]:"+healthPort)
	if err != nil {
		t.Fatal(err)
	}
	r.put(t, "checked.yaml", checked(t, r.Pods[1]))
	d.Await(t, "that the port cannot be opened", func(e daemon.Entry) bool {
		return e.Level == "warn" && strings.Contains(e.Line, healthPort) && strings.Contains(e.Line, "default/checked")
	})
	r.awaitMetric(t, "nlproxy_service_health_port_failures 1")
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	r.awaitMetric(t, "nlproxy_service_health_port_failures 0")
	answers := func(status int, endpoints string) {
		t.Helper()
		for _, address := range []string{r.Self.IPv4().String(), "127.0.0.1"} {
			got := labtest.Get(t, r.Self.Namespace, "http://"+address+":"+healthPort+"/")
			if got.Status != status || got.Header.Get("X-Load-Balancing-Endpoint-Weight") != endpoints {
				t.Errorf("%s: %+v", address, got)
			}
		}
	}
	answers(http.StatusOK, "1")
	r.put(t, "checked.yaml", checked(t, r.Remote[0]))
	d.Synchronised(t)
	answers(http.StatusServiceUnavailable, "0")
}
