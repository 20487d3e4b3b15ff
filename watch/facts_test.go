package watch

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// world is the facts of a source, fed as by an API server.
type world struct {
	*facts
	services *feed[*corev1.Service, model.Service]
	slices   *feed[*discoveryv1.EndpointSlice, slice]
}

// newWorld returns a world in which nothing exists.
func newWorld(t *testing.T) world {
	t.Helper()
	o := Options{}.withDefaults()
	f, r := newFacts(o, kindService, kindSlice), newReporter(o)
	w := world{f, serviceFeed(f, r), sliceFeed(f, r)}
	must(t, w.services.Replace(nil, "1"))
	must(t, w.slices.Replace(nil, "1"))
	w.changes(t)
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w world) snapshot(t *testing.T) model.Snapshot {
	t.Helper()
	s, ok := w.facts.snapshot()
	if !ok {
		t.Fatal("no snapshot")
	}
	return s
}

// changes returns the names that a new snapshot says have changed, sorted.
func (w world) changes(t *testing.T) []string {
	t.Helper()
	return changed(w.snapshot(t))
}

func changed(s model.Snapshot) []string {
	names := []string{}
	for n := range s.Changed {
		names = append(names, n.String())
	}
	slices.Sort(names)
	return names
}

func (w world) expectChanges(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, w.changes(t), compareFacts); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
}

// signalled takes the notice of a possible change, if there is one.
func (w world) signalled() bool {
	select {
	case <-w.changed:
		return true
	default:
		return false
	}
}

func named(name string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Name = name }
}

func TestNothingIsHandedOutBeforeEveryKindHasArrived(t *testing.T) {
	o := Options{}.withDefaults()
	f, r := newFacts(o, kindService, kindSlice), newReporter(o)
	w := world{f, serviceFeed(f, r), sliceFeed(f, r)}
	must(t, w.services.Replace([]any{webService()}, "1"))
	if _, ok := f.snapshot(); ok || w.signalled() {
		t.Fatal("handed out without slices")
	}
	must(t, w.slices.Replace([]any{webSlice()}, "1"))
	if !w.signalled() {
		t.Error("no notice of the first snapshot")
	}
	s := w.snapshot(t)
	if s.Changed != nil {
		t.Errorf("the first snapshot has changes %v, want nil", s.Changed)
	}
	if got := s.Services.Get(webFacts().Name); got == nil || len(got.Endpoints) != 1 {
		t.Errorf("service is %+v", got)
	}
	if second := w.snapshot(t); second.Changed == nil || len(second.Changed) != 0 {
		t.Errorf("the second snapshot has changes %v, want none", second.Changed)
	}
}

func TestChangesAreCoalescedAndUndone(t *testing.T) {
	w := newWorld(t)
	w.signalled()
	must(t, w.services.Add(webService()))
	must(t, w.services.Add(webService(named("api"))))
	if !w.signalled() || w.signalled() {
		t.Error("want one notice of two changes")
	}
	must(t, w.services.Delete(webService(named("api"))))
	w.expectChanges(t, "default/web")

	must(t, w.services.Update(webService(func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 })))
	must(t, w.services.Update(webService()))
	w.expectChanges(t)

	must(t, w.services.Delete(webService()))
	if s := w.snapshot(t); s.Services.Len() != 0 || len(s.Changed) != 1 {
		t.Errorf("%d services, changes %v", s.Services.Len(), s.Changed)
	}
}

func TestWhatDoesNotMatterIsNoChange(t *testing.T) {
	w := newWorld(t)
	must(t, w.services.Add(webService()))
	must(t, w.slices.Add(webSlice()))
	w.changes(t)
	w.signalled()
	must(t, w.services.Update(webService(func(s *corev1.Service) {
		s.ResourceVersion = "7"
		s.Annotations = map[string]string{"a": "b"}
	})))
	must(t, w.slices.Update(webSlice(func(es *discoveryv1.EndpointSlice) {
		es.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: "now"}
	})))
	if w.signalled() {
		t.Error("notice of no change")
	}
}

func TestASnapshotStaysAsItIs(t *testing.T) {
	w := newWorld(t)
	must(t, w.services.Add(webService()))
	must(t, w.slices.Add(webSlice()))
	before := w.snapshot(t)
	must(t, w.slices.Add(webSlice(func(es *discoveryv1.EndpointSlice) { es.Endpoints[0].Addresses[0] = "10.244.1.6" })))
	must(t, w.services.Delete(webService()))
	w.snapshot(t)
	got := before.Services.Get(webFacts().Name)
	want := webFacts(func(s *model.Service) {
		s.Endpoints = map[model.PortKey][]model.Endpoint{s.Ports[0].PortKey: {endpoint("10.244.1.5:8080")}}
	})
	if diff := cmp.Diff(want, got, compareFacts); diff != "" {
		t.Errorf("earlier snapshot (-want +got):\n%s", diff)
	}
}

func TestEndpointsWaitForTheirService(t *testing.T) {
	w := newWorld(t)
	must(t, w.slices.Add(webSlice()))
	w.expectChanges(t)
	must(t, w.services.Add(webService()))
	if got := w.snapshot(t).Services.Get(webFacts().Name); got == nil || len(got.Endpoints) != 1 {
		t.Fatalf("service is %+v, want one with endpoints", got)
	}
	must(t, w.services.Delete(webService()))
	w.expectChanges(t, "default/web")
	must(t, w.services.Add(webService()))
	if got := w.snapshot(t).Services.Get(webFacts().Name); len(got.Endpoints) != 1 {
		t.Errorf("the endpoints of a service that came again are %v", got.Endpoints)
	}
}

func TestASliceMovesToAnotherService(t *testing.T) {
	w := newWorld(t)
	must(t, w.services.Add(webService()))
	must(t, w.services.Add(webService(named("api"))))
	must(t, w.slices.Add(webSlice()))
	w.changes(t)
	must(t, w.slices.Update(webSlice(func(es *discoveryv1.EndpointSlice) {
		es.Labels[discoveryv1.LabelServiceName] = "api"
	})))
	w.expectChanges(t, "default/api", "default/web")
	must(t, w.slices.Delete(webSlice()))
	w.expectChanges(t, "default/api")
	if len(w.behind) != 0 || len(w.facts.slices) != 0 {
		t.Errorf("left over: %v, %v", w.behind, w.facts.slices)
	}
}

func TestALabelMakesAServiceAndASliceGo(t *testing.T) {
	w := newWorld(t)
	must(t, w.services.Add(webService()))
	must(t, w.slices.Add(webSlice()))
	w.changes(t)
	other := webService(func(s *corev1.Service) { s.Labels = map[string]string{labelProxyName: "mesh"} })
	must(t, w.services.Update(other))
	if s := w.snapshot(t); s.Services.Len() != 0 {
		t.Error("a service of another proxy stays")
	}
	must(t, w.services.Update(webService()))
	must(t, w.slices.Update(webSlice(func(es *discoveryv1.EndpointSlice) { es.Labels[corev1.IsHeadlessService] = "" })))
	if got := w.snapshot(t).Services.Get(webFacts().Name); got == nil || len(got.Endpoints) != 0 {
		t.Errorf("service is %+v, want one without endpoints", got)
	}
}

func TestReplaceChangesOnlyWhatDiffers(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		must(t, w.services.Add(webService(named(name))))
	}
	w.changes(t)
	w.signalled()
	must(t, w.services.Replace([]any{webService(named("a")), webService(named("b")), webService(named("c"))}, "9"))
	must(t, w.slices.Replace(nil, "9"))
	if w.signalled() {
		t.Error("notice of an equal list")
	}
	must(t, w.services.Replace([]any{
		webService(named("a")),
		webService(named("b"), func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 }),
		webService(named("d")),
	}, "10"))
	w.expectChanges(t, "default/b", "default/c", "default/d")

	must(t, w.slices.Replace([]any{webSlice(func(es *discoveryv1.EndpointSlice) {
		es.Labels[discoveryv1.LabelServiceName] = "a"
	})}, "11"))
	w.expectChanges(t, "default/a")
	must(t, w.slices.Replace(nil, "12"))
	w.expectChanges(t, "default/a")
}

// TestTheOrderOfArrivalDoesNotMatter feeds the same objects, some of them twice
// and some of them changed in between, in random orders.
func TestTheOrderOfArrivalDoesNotMatter(t *testing.T) {
	slicesOf := func() []*discoveryv1.EndpointSlice {
		var all []*discoveryv1.EndpointSlice
		for i, ready := range []bool{true, false, true} {
			all = append(all, webSlice(func(es *discoveryv1.EndpointSlice) {
				es.Name = string(rune('a' + i))
				es.Endpoints[0].Conditions.Ready = &ready
				es.Endpoints[0].NodeName = &es.Name
			}))
		}
		return all
	}
	var want model.Services
	for i := range 50 {
		w := newWorld(t)
		steps := []func() error{func() error { return w.services.Add(webService()) }}
		for _, es := range slicesOf() {
			steps = append(steps, func() error {
				if rand.IntN(2) == 0 {
					must(t, w.slices.Add(webSlice(func(other *discoveryv1.EndpointSlice) { other.Name = es.Name })))
					w.changes(t)
				}
				return w.slices.Add(es)
			})
		}
		for _, step := range rand.Perm(len(steps)) {
			must(t, steps[step]())
		}
		got := w.snapshot(t).Services
		if i == 0 {
			want = got
		}
		if diff := cmp.Diff(byName(want), byName(got), compareFacts); diff != "" {
			t.Fatalf("services (-want +got):\n%s", diff)
		}
	}
}

func byName(s model.Services) map[string]model.Service {
	all := map[string]model.Service{}
	for svc := range s.All() {
		all[svc.Name.String()] = *svc
	}
	return all
}

func TestStreamedListsAreReducedAsTheyArrive(t *testing.T) {
	w := newWorld(t)
	got, err := w.services.Transformer()(webService())
	must(t, err)
	again, err := w.services.Transformer()(got)
	must(t, err)
	if got != again {
		t.Error("reduced twice")
	}
	meta := got.(metav1.ObjectMetaAccessor).GetObjectMeta()
	if meta.GetNamespace() != "default" || meta.GetName() != "web" {
		t.Errorf("name is %s/%s", meta.GetNamespace(), meta.GetName())
	}
	must(t, w.services.Replace([]any{got}, "2"))
	w.expectChanges(t, "default/web")
	if _, err := w.services.Transformer()(webSlice()); err == nil {
		t.Error("a slice passes for a service")
	}
}

func TestLocalAddressesMakeASnapshotWithoutChangedServices(t *testing.T) {
	w := newWorld(t)
	must(t, w.services.Add(webService()))
	before := w.snapshot(t)
	w.signalled()
	w.setLocal(addrs("127.0.0.1", "192.168.7.1"))
	if !w.signalled() {
		t.Error("no notice")
	}
	after := w.snapshot(t)
	if len(after.Changed) != 0 || before.Node.Equal(after.Node) {
		t.Errorf("changes are %v, node is %+v", after.Changed, after.Node)
	}
	w.setLocal(addrs("127.0.0.1", "192.168.7.1"))
	if w.signalled() {
		t.Error("notice of equal addresses")
	}
}

func TestALostNodeStaysAsItWas(t *testing.T) {
	w := newWorld(t)
	n := model.Node{Name: "n1", Addresses: addrs("192.168.7.1")}
	w.setLocal(addrs("127.0.0.1"))
	w.setNode(seenNode{Node: n})
	lost := errors.New("gone")
	w.loseNode(lost)
	if _, err := w.nodeState(); err != lost {
		t.Errorf("error is %v", err)
	}
	n.Local = addrs("127.0.0.1")
	if got := w.snapshot(t).Node; !got.Equal(n) {
		t.Errorf("node is %+v, want %+v", got, n)
	}
	w.setNode(seenNode{Node: n})
	if _, err := w.nodeState(); err != nil {
		t.Errorf("error is %v after the node came again", err)
	}
}

func TestProblemsAreToldOnceUntilTheyChange(t *testing.T) {
	var told []string
	o := Options{Observer: func(p Problem) { told = append(told, p.String()) }}.withDefaults()
	f, r := newFacts(o), newReporter(o)
	services := serviceFeed(f, r)
	bad := func(values ...string) *corev1.Service {
		return webService(func(s *corev1.Service) { s.Spec.ExternalIPs = values })
	}
	expect := func(step string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, told, compareFacts); diff != "" {
			t.Errorf("%s: told (-want +got):\n%s", step, diff)
		}
		told = nil
	}
	x := `service default/web: spec.externalIPs[0]: "x" is not an IP address`
	y := `service default/web: spec.externalIPs[1]: "y" is not an IP address`

	must(t, services.Add(bad("x")))
	expect("new", x)
	must(t, services.Update(bad("x")))
	must(t, services.Replace([]any{bad("x")}, "2"))
	expect("the same")
	must(t, services.Update(bad("x", "y")))
	expect("one more", y)
	if got := texts(r.all()); !slices.Equal(got, []string{x, y}) {
		t.Errorf("all problems are %v", got)
	}
	must(t, services.Update(bad()))
	must(t, services.Update(bad("x")))
	expect("again after it was good", x)
	must(t, services.Replace(nil, "3"))
	if got := r.all(); len(got) != 0 {
		t.Errorf("problems of nothing: %v", got)
	}
	must(t, services.Add(bad("x")))
	expect("again after it was gone", x)
	must(t, services.Delete(bad("x")))
	if len(r.current) != 0 {
		t.Errorf("remembered: %v", slices.Collect(maps.Keys(r.current)))
	}
}
