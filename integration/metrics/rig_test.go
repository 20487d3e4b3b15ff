package metrics

import (
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nlproxy/nlproxy/integration/cluster"
	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/objects"
	"github.com/nlproxy/nlproxy/integration/site"
)

func TestMain(m *testing.M) { site.Main(m) }

// Where both proxies listen if nothing else is configured.
const (
	metricsAddress = "http://127.0.0.1:10249"
	healthAddress  = "http://127.0.0.1:10256"
)

const (
	minSyncPeriod = 10 * time.Millisecond
	patience      = time.Minute
	pace          = 50 * time.Millisecond
)

// A rig is a site with services of each kind that a metric is about.
type rig struct {
	*site.Site
	// configuration is that of both proxies.
	configuration             string
	web, api, inside, outside objects.Service
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{
		Site:          site.New(t, site.Options{Pods: 2, Remote: 1}),
		configuration: daemon.Configuration(minSyncPeriod) + "enableProfiling: true\n",
	}
	here, elsewhere := r.Pods[0], r.Remote[0]
	r.web = objects.Service{Name: "web", Number: 1, Type: corev1.ServiceTypeNodePort, DualStack: true, Endpoints: objects.At(here, elsewhere)}
	r.api = objects.Service{Name: "api", Number: 2, Affinity: true, Endpoints: objects.At(here, elsewhere)}
	r.inside = objects.Service{Name: "inside", Number: 3, Local: true, Endpoints: objects.At(elsewhere)}
	r.outside = objects.Service{Name: "outside", Number: 4, Type: corev1.ServiceTypeLoadBalancer, Endpoints: objects.At(elsewhere)}
	balanced := r.outside.Object()
	balanced.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	r.Create(t, []byte(objects.Documents(t, r.inside, r.web, r.api)+objects.YAML(t, balanced, r.outside.Slice())))
	return r
}

// triggered is a slice whose last change was asked for at a time.
func triggered(s *discoveryv1.EndpointSlice, at time.Time) *discoveryv1.EndpointSlice {
	s.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: at.UTC().Format(time.RFC3339Nano)}
	return s
}

// update makes slices what the API server has.
func (r *rig) update(t *testing.T, all ...*discoveryv1.EndpointSlice) {
	t.Helper()
	client := r.Client(t, cluster.Admin).DiscoveryV1().EndpointSlices(metav1.NamespaceDefault)
	for _, s := range all {
		if _, err := client.Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// A proxy is a running one.
type proxy struct {
	name    string
	from    *lab.Namespace
	answers map[request]response
	// seen was scraped at scraped, and shows what was asked for at changed.
	changed, scraped time.Time
	seen             scrape
}

func (r *rig) proxy(name string) *proxy {
	return &proxy{name: name, from: r.Self.Namespace, answers: map[request]response{}}
}

// each runs a test with kube-proxy, and then with nlproxy in its place.
func (r *rig) each(t *testing.T, test func(*testing.T, *proxy)) (theirs, ours *proxy) {
	theirs, ours = r.proxy("kube-proxy"), r.proxy("nlproxy")
	t.Run(theirs.name, func(t *testing.T) {
		r.reset(t)
		kubeProxy := r.StartKubeProxy(t, []byte(r.configuration))
		test(t, theirs)
		kubeProxy.Kill()
	})
	t.Run(ours.name, func(t *testing.T) {
		r.reset(t)
		o := r.Options(t, cluster.KubeProxy, minSyncPeriod)
		o.Config = r.configuration
		d := daemon.Start(t, o)
		d.Synchronised(t)
		test(t, ours)
		d.Stop(t)
	})
	if theirs.seen == nil || ours.seen == nil {
		t.FailNow()
	}
	return theirs, ours
}

// drive has a proxy go through what its metrics are about, and scrapes it then.
func (r *rig) drive(t *testing.T, p *proxy) {
	t.Helper()
	for _, path := range []string{"/healthz", "/livez"} {
		p.ask(t, http.MethodGet, healthAddress+path, "")
	}
	web, api := r.web, r.api
	web.Endpoints, api.Endpoints = web.Endpoints[:1], api.Endpoints[:1]
	// What was asked for before the start is not measured, and what was asked
	// for now is.
	r.update(t, triggered(r.outside.Slice(), time.Now().Add(-time.Hour)))
	p.changed = time.Now()
	r.update(t, triggered(web.Slice(), p.changed), triggered(web.SliceIPv6(), p.changed), triggered(api.Slice(), p.changed))
	p.await(t, "what was asked for to be true", func(s scrape) bool {
		return count(s.histogram(programming, v4)) >= 2 && count(s.histogram(programming, v6)) >= 1 &&
			count(s.histogram(reconciling, v4)) > 0 && count(s.histogram(reconciling, v6)) > 0
	})
}

// await scrapes until the metrics are right.
func (p *proxy) await(t *testing.T, what string, right func(scrape) bool) {
	t.Helper()
	ticks := time.NewTicker(pace)
	defer ticks.Stop()
	for deadline := time.Now().Add(patience); ; <-ticks.C {
		p.seen = p.scrape(t)
		p.scraped = time.Now()
		if right(p.seen) {
			return
		}
		if p.scraped.After(deadline) {
			t.Fatalf("%s: waited in vain for %s; its metrics:\n%v", p.name, what, p.seen)
		}
	}
}

// reset makes the endpoints those that each proxy finds when it starts. What
// was asked for before that is not measured.
func (r *rig) reset(t *testing.T) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	for _, s := range []*discoveryv1.EndpointSlice{r.web.Slice(), r.web.SliceIPv6(), r.api.Slice(), r.outside.Slice()} {
		r.update(t, triggered(s, old))
	}
}
