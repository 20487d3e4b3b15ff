package watch

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// large returns service number i with 5 endpoints, every string of it new, as
// it comes out of a decoder.
func large(i int) (*corev1.Service, *discoveryv1.EndpointSlice) {
	ip := fmt.Sprintf("10.96.%d.%d", i/250, i%250+1)
	name := fmt.Sprintf("service-%05d", i)
	svc := webService(named(name), func(s *corev1.Service) {
		s.Spec.ClusterIP, s.Spec.ClusterIPs = ip, []string{ip}
		s.Spec.Ports[0].Name = fmt.Sprint("http")
		s.Annotations = map[string]string{"note": fmt.Sprintf("%0500d", i)}
		s.ManagedFields = []metav1.ManagedFieldsEntry{{FieldsV1: &metav1.FieldsV1{Raw: make([]byte, 1000)}}}
	})
	es := webSlice(func(es *discoveryv1.EndpointSlice) {
		es.Name = name + "-abcde"
		es.Labels[discoveryv1.LabelServiceName] = name
		es.Ports[0].Name = new(fmt.Sprint("http"))
		es.Endpoints = nil
		for e := range 5 {
			es.Endpoints = append(es.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{fmt.Sprintf("10.%d.%d.%d", 128+e, i/250, i%250+1)},
				NodeName:  new(fmt.Sprintf("node-%03d.example.internal", (i+e)%100)),
				Hints:     &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: fmt.Sprintf("zone-%d", e%3)}}},
			})
		}
	})
	return svc, es
}

// BenchmarkSnapshot measures what a source holds on to for 10,000 services of
// 5 endpoints, its last snapshot included, and what it takes to make that.
func BenchmarkSnapshot(b *testing.B) {
	const services = 10_000
	for b.Loop() {
		before := heap()
		f := newFacts(Options{}.withDefaults())
		r := newReporter(Options{}.withDefaults())
		svcs, slices := serviceFeed(f, r), sliceFeed(f, r)
		for i := range services {
			svc, es := large(i)
			if err := svcs.Add(svc); err != nil {
				b.Fatal(err)
			}
			if err := slices.Add(es); err != nil {
				b.Fatal(err)
			}
		}
		s, _ := f.snapshot()
		b.ReportMetric(float64(heap()-before)/services, "retained-B/service")
		runtime.KeepAlive(f)
		runtime.KeepAlive(s)
	}
}

// BenchmarkChange measures one endpoint that changes among 10,000 services.
func BenchmarkChange(b *testing.B) {
	f := newFacts(Options{}.withDefaults())
	r := newReporter(Options{}.withDefaults())
	svcs, slices := serviceFeed(f, r), sliceFeed(f, r)
	for i := range 10_000 {
		svc, es := large(i)
		if err := svcs.Add(svc); err != nil {
			b.Fatal(err)
		}
		if err := slices.Add(es); err != nil {
			b.Fatal(err)
		}
	}
	f.snapshot()
	_, es := large(0)
	ready := true
	es.Endpoints[0].Conditions.Ready = &ready
	b.ReportAllocs()
	for b.Loop() {
		ready = !ready
		if err := slices.Update(es); err != nil {
			b.Fatal(err)
		}
		if s, _ := f.snapshot(); len(s.Changed) != 1 {
			b.Fatalf("%d changes", len(s.Changed))
		}
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
