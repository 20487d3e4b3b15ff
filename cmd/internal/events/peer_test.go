package events

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nlproxy/nlproxy/conntrack"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/integration/cluster"
	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
)

func TestMain(m *testing.M) { cluster.Main(m) }

// server is an API server, and where it is.
func server(t *testing.T) (*lab.Namespace, *cluster.Cluster) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server, which takes long to build and a while to start")
	}
	ns := labtest.Namespace(t)
	return ns, cluster.Start(t, ns, cluster.Options{})
}

// as is a recorder that runs with u's rights until t ends.
func as(t *testing.T, c *cluster.Cluster, u cluster.User) *Recorder {
	t.Helper()
	r, err := New(c.Config(u), objects.Here, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return r
}

// taken is a port that is in use, so that no health of a service is served on it.
const taken = 30999

// Both programs record the same on one node.
func TestEventsAreThoseOfKubeProxy(t *testing.T) {
	ns, c := server(t)
	block(t, ns)
	c.Create(t, []byte(objects.YAML(t, objects.Node(), unhealthy())))
	c.StartKubeProxy(t, []byte(daemon.Configuration(time.Second)))
	reasons := []string{ReasonStarting, ReasonServiceHealthPortFailed}
	theirs := c.AwaitEvents(t, "kube-proxy", reasons...)

	r := as(t, c, cluster.KubeProxy)
	r.Starting()
	r.ServiceHealthPortFailed(model.Name{Namespace: "default", Name: "unhealthy"}, taken, errors.New("taken"))
	ours := c.AwaitEvents(t, "nlproxy", reasons...)
	for _, reason := range reasons {
		if diff := cmp.Diff(plain(t, theirs[reason]), plain(t, ours[reason])); diff != "" {
			t.Errorf("%s (-kube-proxy +nlproxy):\n%s", reason, diff)
		}
	}
	if theirs, ours := theirs[ReasonStarting], ours[ReasonStarting]; ours.Note != theirs.Note {
		t.Errorf("note %q, kube-proxy's %q", ours.Note, theirs.Note)
	}
}

// block listens where the health of the service is to be served.
func block(t *testing.T, ns *lab.Namespace) {
	t.Helper()
	l, err := ns.Listen("tcp", fmt.Sprintf(":%d", taken))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
}

// unhealthy is a service whose health cannot be served.
func unhealthy() *corev1.Service {
	s := objects.Service{Name: "unhealthy", Number: 1, Type: corev1.ServiceTypeLoadBalancer}.Object()
	s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	s.Spec.HealthCheckNodePort = taken
	return s
}

// plain is an event without what differs from one event to the next, and
// without what differs between the programs: which one it was, the note, and the
// UID of the node, which kube-proxy 1.37 does not give, so that "kubectl
// describe node" shows none of its events.
func plain(t *testing.T, e eventsv1.Event) eventsv1.Event {
	t.Helper()
	if !strings.HasPrefix(e.Name, e.Regarding.Name+".") {
		t.Errorf("event %s of %s", e.Name, e.Regarding.Name)
	}
	if time.Since(e.EventTime.Time) > time.Hour || e.EventTime.After(time.Now()) {
		t.Errorf("event %s is of %s", e.Name, e.EventTime)
	}
	e.ObjectMeta = metav1.ObjectMeta{Namespace: e.Namespace}
	e.EventTime = metav1.MicroTime{}
	e.ReportingInstance, e.Note, e.Regarding.UID = "", "", ""
	return e
}

func TestAnAPIServerShowsTheEventsOfANodeAndCountsThem(t *testing.T) {
	_, c := server(t)
	client := c.Client(t, cluster.Admin)
	r := as(t, c, cluster.KubeProxy)
	r.TableFull(conntrack.Stats{Entries: 91, Limit: 100})
	r.TableFull(conntrack.Stats{Entries: 92, Limit: 100})
	counted := func(e corev1.Event) bool { return e.Series != nil && e.Series.Count == 2 }
	// As "kubectl describe node" asks.
	of := metav1.ListOptions{FieldSelector: "involvedObject.kind=Node,involvedObject.name=node1,involvedObject.uid=node1"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	watching, err := client.CoreV1().Events(metav1.NamespaceAll).Watch(ctx, of)
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	for change := range watching.ResultChan() {
		e, ok := change.Object.(*corev1.Event)
		if !ok || e.Type != "Warning" || !strings.HasPrefix(e.Message, "Connection tracking is 91 % full") {
			t.Fatalf("%+v", change.Object)
		}
		if counted(*e) {
			break
		}
	}
	list, err := client.CoreV1().Events(metav1.NamespaceAll).List(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || !counted(list.Items[0]) {
		t.Errorf("events: %+v", list.Items)
	}
}

func TestWhoMayNotRecordEventsIsToldSo(t *testing.T) {
	_, c := server(t)
	core, logs := observer.New(zap.WarnLevel)
	r, err := New(c.Config(cluster.ServiceAccount), objects.Here, Options{Logger: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	r.Starting()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Run(ctx)
	if logs.Len() != 1 || !strings.Contains(fmt.Sprint(logs.All()[0].ContextMap()["error"]), "forbidden") {
		t.Errorf("log: %v", logs.All())
	}
}
