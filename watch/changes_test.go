package watch

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// triggered is an edit of a slice by which it was changed at a time.
func triggered(at time.Time) func(*discoveryv1.EndpointSlice) {
	return func(es *discoveryv1.EndpointSlice) {
		es.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: at.Format(time.RFC3339Nano)}
	}
}

func withAddress(addr string) func(*discoveryv1.EndpointSlice) {
	return func(es *discoveryv1.EndpointSlice) { es.Endpoints[0].Addresses = []string{addr} }
}

func ofIPv6(es *discoveryv1.EndpointSlice) {
	es.Name, es.AddressType = "web-6", discoveryv1.AddressTypeIPv6
	es.Endpoints[0].Addresses = []string{"fd00::5"}
}

// expectTriggers compares the triggers of a new snapshot, all of default/web.
func (w world) expectTriggers(t *testing.T, want ...model.Trigger) {
	t.Helper()
	for i := range want {
		want[i].Service = model.Name{Namespace: "default", Name: "web"}
	}
	if diff := cmp.Diff(want, w.snapshot(t).Triggers, compareFacts); diff != "" {
		t.Errorf("triggers (-want +got):\n%s", diff)
	}
}

func TestTriggersAreThoseOfChangesSinceTheStart(t *testing.T) {
	w := newWorld(t)
	ago := func(d time.Duration) time.Time { return w.started.Add(-d) }
	in := func(d time.Duration) time.Time { return w.started.Add(d).UTC().Round(0) }
	v4 := func(d time.Duration) model.Trigger { return model.Trigger{Family: model.IPv4, At: in(d)} }
	v6 := func(d time.Duration) model.Trigger { return model.Trigger{Family: model.IPv6, At: in(d)} }

	must(t, w.slices.Replace([]any{webSlice(triggered(ago(time.Hour)))}, "2"))
	w.expectTriggers(t) // it was there before the start

	must(t, w.slices.Update(webSlice(triggered(in(1)), withAddress("10.244.1.6"))))
	must(t, w.slices.Update(webSlice(triggered(in(2)), withAddress("10.244.1.7"))))
	must(t, w.slices.Add(webSlice(triggered(in(3)), ofIPv6)))
	w.expectTriggers(t, v4(1), v4(2), v6(3))
	w.expectTriggers(t)

	must(t, w.slices.Update(webSlice(triggered(in(2)), withAddress("10.244.1.7"))))
	w.expectTriggers(t) // the same once more

	w.signalled()
	must(t, w.slices.Update(webSlice(triggered(in(4)), withAddress("10.244.1.7"))))
	if !w.signalled() {
		t.Error("no notice of a trigger whose change was none")
	}
	w.expectTriggers(t, v4(4))

	must(t, w.slices.Replace([]any{
		webSlice(triggered(in(4)), withAddress("10.244.1.7")),
		webSlice(triggered(in(5)), ofIPv6),
	}, "3"))
	w.expectTriggers(t, v6(5)) // what a list after a lost connection has
}

func TestTriggersGoWithTheSlice(t *testing.T) {
	w := newWorld(t)
	at := w.started.Add(time.Second)
	must(t, w.slices.Add(webSlice(triggered(at))))
	must(t, w.slices.Add(webSlice(triggered(at), ofIPv6)))
	must(t, w.slices.Delete(webSlice(triggered(at))))
	w.expectTriggers(t, model.Trigger{Family: model.IPv6, At: at.UTC().Round(0)})
}

func TestTriggerThatIsNoTimeIsAProblem(t *testing.T) {
	_, problems := reduceSlice(webSlice(func(es *discoveryv1.EndpointSlice) {
		es.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: "yesterday"}
	}))
	want := []string{`endpointslice default/web-1: metadata.annotations[endpoints.kubernetes.io/last-change-trigger-time]: "yesterday" is no time as RFC 3339 has it`}
	if diff := cmp.Diff(want, texts(problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestChangesAreCounted(t *testing.T) {
	w := newWorld(t)
	expect := func(what string, want Changes) {
		t.Helper()
		if got := w.counted(); got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	expect("nothing", Changes{})

	must(t, w.services.Add(webService()))
	must(t, w.services.Add(webService(named("api"))))
	must(t, w.services.Update(webService()))
	expect("two services and an event that changes nothing", Changes{Services: 3, ServicesPending: 2})
	must(t, w.slices.Add(webSlice()))
	must(t, w.slices.Update(webSlice(withAddress("10.244.1.6"))))
	must(t, w.slices.Update(webSlice(withAddress("10.244.1.6"))))
	expect("a slice that changes", Changes{Services: 3, ServicesPending: 2, Endpoints: 3, EndpointsPending: 2})

	w.changes(t)
	expect("once a snapshot shows it", Changes{Services: 3, Endpoints: 3})

	must(t, w.slices.Update(webSlice(withAddress("10.244.1.7"))))
	must(t, w.services.Update(webService(func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 })))
	expect("a service after its slice", Changes{Services: 4, ServicesPending: 1, Endpoints: 4, EndpointsPending: 1})

	must(t, w.services.Replace([]any{webService(), webService(named("api"))}, "2"))
	must(t, w.slices.Replace(nil, "2"))
	expect("lists, of which one service and one slice differ", Changes{Services: 5, ServicesPending: 1, Endpoints: 5, EndpointsPending: 2})

	must(t, w.slices.Add(webSlice(func(es *discoveryv1.EndpointSlice) { es.Labels = nil })))
	expect("a slice of no service", Changes{Services: 5, ServicesPending: 1, Endpoints: 5, EndpointsPending: 2})
}
