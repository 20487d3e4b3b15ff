package watch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// patience bounds every wait of these tests. None of them waits that long.
const patience = time.Minute

// running is a source that follows something until the test ends.
type running struct {
	*Source
	t       *testing.T
	ctx     context.Context
	logs    *observer.ObservedLogs
	logged  chan struct{}   // has a value when there may be more logs
	changed map[string]bool // what snapshots named since changes was called
}

// run runs a source, made with a logger that is kept.
func run(t *testing.T, o Options, source func(Options) (*Source, error)) *running {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	logged := make(chan struct{}, 1)
	o.Logger = zap.New(core, zap.Hooks(func(zapcore.Entry) error {
		select {
		case logged <- struct{}{}:
		default:
		}
		return nil
	}))
	s, err := source(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Run(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return &running{Source: s, t: t, ctx: ctx, logs: logs, logged: logged, changed: map[string]bool{}}
}

// until takes snapshots until one is as wanted, and returns that.
func (r *running) until(what string, want func(model.Snapshot) bool) model.Snapshot {
	r.t.Helper()
	for {
		select {
		case <-r.Changed():
		case <-r.ctx.Done():
			r.t.Fatalf("waited in vain for %s; logs: %v", what, r.logs.All())
		}
		s, ok := r.Snapshot()
		for n := range s.Changed {
			r.changed[n.String()] = true
		}
		if ok && want(s) {
			return s
		}
	}
}

// changes returns the names that snapshots said have changed, and begins anew.
func (r *running) changes() []string {
	var names []string
	for n := range r.changed {
		names = append(names, n)
	}
	r.changed = map[string]bool{}
	slices.Sort(names)
	return names
}

func has(names ...string) func(model.Snapshot) bool {
	return func(s model.Snapshot) bool {
		for _, n := range names {
			if s.Services.Get(model.Name{Namespace: "default", Name: n}) == nil {
				return false
			}
		}
		return s.Services.Len() == len(names)
	}
}

// follow runs a source of server that retries at once.
func follow(t *testing.T, server *apiServer, o Options) *running {
	t.Helper()
	return followBy(t, &rest.Config{Host: server.URL, QPS: -1}, o)
}

// followBy runs a source that reaches its server so, and retries at once.
func followBy(t *testing.T, config *rest.Config, o Options) *running {
	t.Helper()
	return run(t, o, func(o Options) (*Source, error) {
		c, err := newClients(config)
		if err != nil {
			return nil, err
		}
		return newAPI(c, o.withDefaults(), &wait.Backoff{Duration: time.Millisecond}), nil
	})
}

func TestAPIFollowsStreamedAndListedObjects(t *testing.T) {
	for name, old := range map[string]bool{"streamed": false, "listed": true} {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer(t)
			server.oldStreams = old
			server.put("services", webService())
			server.put("endpointslices", webSlice())
			r := follow(t, server, Options{})
			s := r.until("the first snapshot", has("web"))
			want := webFacts(func(s *model.Service) {
				s.Endpoints = map[model.PortKey][]model.Endpoint{s.Ports[0].PortKey: {endpoint("10.244.1.5:8080")}}
			})
			if diff := cmp.Diff(want, s.Services.Get(want.Name), compareFacts); diff != "" {
				t.Errorf("service (-want +got):\n%s", diff)
			}
			server.put("services", webService(named("api")))
			r.until("a second service", has("web", "api"))
			server.drop("services", "web")
			r.until("the first one gone", has("api"))
			if got := r.changes(); !slices.Equal(got, []string{"default/api", "default/web"}) {
				t.Errorf("changed: %v", got)
			}
			if n := r.logs.FilterLevelExact(zap.WarnLevel).Len(); n > 0 {
				t.Errorf("warned: %v", r.logs.All())
			}
		})
	}
}

func TestAPIAsksForProtobufStreamsAndSelections(t *testing.T) {
	server := newAPIServer(t)
	follow(t, server, Options{NodeName: "n1"})
	var asked []string
	for range 3 {
		q := <-server.queries
		asked = append(asked, q.Get("labelSelector")+" "+q.Get("fieldSelector")+" "+q.Get("sendInitialEvents"))
		if accept := <-server.accepts; !strings.HasPrefix(accept, "application/vnd.kubernetes.protobuf") {
			t.Errorf("accepts %q", accept)
		}
	}
	slices.Sort(asked)
	want := []string{
		" metadata.name=n1 true",
		"!service.kubernetes.io/headless  true",
		"!service.kubernetes.io/service-proxy-name spec.clusterIP!=None true",
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func headlessService(svc *corev1.Service) {
	svc.Name, svc.Spec.ClusterIP, svc.Spec.ClusterIPs = "headless", "None", []string{"None"}
}

func TestAPIFiltersWhatAnOldServerDoesNot(t *testing.T) {
	for name, streams := range map[string]bool{"streamed": true, "listed": false} {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer(t)
			server.oldFields, server.oldStreams = true, !streams
			server.put("services", webService())
			server.put("services", webService(headlessService))
			r := follow(t, server, Options{})
			r.until("the first snapshot", has("web"))
			server.put("services", webService(named("api")))
			r.until("a second service", has("web", "api"))
			if got := r.logs.FilterMessageSnippet("field selector").Len(); got != 1 {
				t.Errorf("told %d times, want once: %v", got, r.logs.All())
			}
		})
	}
}

func TestAPIFollowsTheLabelOfAnotherProxy(t *testing.T) {
	for name, ignores := range map[string]bool{"selected by the server": false, "filtered here": true} {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer(t)
			server.noLabels = ignores
			server.put("services", webService())
			r := follow(t, server, Options{})
			r.until("the first snapshot", has("web"))
			server.put("services", webService(func(s *corev1.Service) { s.Labels = map[string]string{labelProxyName: "mesh"} }))
			r.until("the service gone", has())
			server.put("services", webService())
			r.until("the service again", has("web"))
		})
	}
}

func TestAPIKeepsItsStateThroughARestart(t *testing.T) {
	for name, old := range map[string]bool{"streamed": false, "listed": true} {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer(t)
			server.oldStreams = old
			for _, name := range []string{"a", "b", "c"} {
				server.put("services", webService(named(name)))
			}
			server.put("endpointslices", webSlice())
			r := follow(t, server, Options{})
			r.until("the first snapshot", has("a", "b", "c"))

			server.leave(true)
			server.put("services", webService(named("b"), func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 }))
			server.drop("services", "c")
			server.put("services", webService(named("d")))
			server.forget()
			if s, ok := r.Snapshot(); !ok || s.Services.Len() != 3 {
				t.Errorf("%d services while the server is away, want 3", s.Services.Len())
			}
			server.leave(false)
			r.until("the services after the restart", has("a", "b", "d"))
			if got := r.changes(); !slices.Equal(got, []string{"default/b", "default/c", "default/d"}) {
				t.Errorf("changed: %v", got)
			}
		})
	}
}

func TestAPITellsOfAnOutageOnce(t *testing.T) {
	server := newAPIServer(t)
	server.leave(true)
	r := follow(t, server, Options{})
	for range 20 {
		<-server.queries
	}
	if _, ok := r.Snapshot(); ok {
		t.Error("a snapshot without a server")
	}
	server.leave(false)
	r.until("the first snapshot", has())
	if got := r.logs.FilterMessageSnippet("cannot list yet; nothing is programmed").Len(); got != 2 {
		t.Errorf("told %d times of the outage, want once for each kind: %v", got, r.logs.All())
	}
	if got := r.logs.FilterMessageSnippet("can list and watch again").Len(); got != 2 {
		t.Errorf("told %d times of its end, want once for each kind: %v", got, r.logs.All())
	}
}

func node(name string, addresses ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, a := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	return n
}

func TestAPIGoesOnWithoutANodeAndTakesItWhenItComes(t *testing.T) {
	server := newAPIServer(t)
	server.put("nodes", node("n2", "192.168.7.2"))
	r := follow(t, server, Options{NodeName: "n1", NodeTimeout: time.Millisecond})
	if err := r.Ready(r.ctx); !errors.Is(err, ErrNoNode) || !strings.Contains(err.Error(), "n1") {
		t.Fatalf("ready: %v, want ErrNoNode of n1", err)
	}
	s := r.until("a snapshot without the node", func(model.Snapshot) bool { return true })
	if s.Node.Name != "n1" || len(s.Node.Addresses) > 0 {
		t.Errorf("node is %+v, want nothing but the name", s.Node)
	}
	if got := texts(r.Problems()); len(got) != 1 || !strings.HasPrefix(got[0], "node n1: does not exist") {
		t.Errorf("problems are %v", got)
	}

	server.put("nodes", node("n1", "192.168.7.1"))
	r.until("the node", func(s model.Snapshot) bool { return len(s.Node.Addresses) == 1 })
	if err := r.NodeErr(); err != nil {
		t.Errorf("error is %v with the node there", err)
	}
	if got := r.Problems(); len(got) != 0 {
		t.Errorf("problems are %v", got)
	}
}

func TestAPIKeepsANodeThatIsDeleted(t *testing.T) {
	server := newAPIServer(t)
	server.put("nodes", node("n1", "192.168.7.1"))
	told := make(chan Problem, 10)
	r := follow(t, server, Options{NodeName: "n1", Observer: func(p Problem) { told <- p }})
	if err := r.Ready(r.ctx); err != nil {
		t.Fatal(err)
	}
	server.drop("nodes", "n1")
	if p := <-told; p.Object != "node n1" {
		t.Errorf("told of %v", p)
	}
	server.put("services", webService()) // comes after the node is gone
	s := r.until("a service", has("web"))
	if want := addrs("192.168.7.1"); !slices.Equal(s.Node.Addresses, want) {
		t.Errorf("node is %+v", s.Node)
	}
}

func TestReadyEndsWithItsContext(t *testing.T) {
	s, err := API(&rest.Config{Host: "http://127.0.0.1:1"}, Options{})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Ready(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestOptionsNameTheBadField(t *testing.T) {
	for field, o := range map[string]Options{
		"NodeName":    {NodeName: "Node 1"},
		"NodeTimeout": {NodeTimeout: -1},
		"PodCIDR":     {PodCIDRTimeout: -1},
		"Rescan":      {Rescan: -1},
	} {
		_, err := API(&rest.Config{}, o)
		if err == nil || !strings.HasPrefix(err.Error(), "watch: "+field) {
			t.Errorf("%+v: error is %v, want one of %s", o, err, field)
		}
	}
}
