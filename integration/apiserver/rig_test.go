package apiserver

import (
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/nlproxy/nlproxy/integration/cluster"
	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
	"github.com/nlproxy/nlproxy/integration/site"
)

func TestMain(m *testing.M) { site.Main(m) }

// A rig is a site whose API server lets the daemon read what it needs.
type rig struct {
	*site.Site
	admin kubernetes.Interface
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{Site: site.New(t, site.Options{Pods: 6, Remote: 5, Networks: []string{"tcp"}})}
	r.admin = r.Client(t, cluster.Admin)
	r.allow(t, needed...)
	return r
}

// options are those of a daemon that is the service account.
func (r *rig) options(t *testing.T) daemon.Options {
	t.Helper()
	return r.Options(t, cluster.ServiceAccount, minSyncPeriod)
}

// minSyncPeriod is the least time between two synchronisations.
const minSyncPeriod = 10 * time.Millisecond

// inside is options in a file system that holds what these need, and no more.
func (r *rig) inside(t *testing.T, root *daemon.Root) daemon.Options {
	t.Helper()
	o := r.options(t)
	o.Root = root
	authority := r.Config(cluster.ServiceAccount).CAFile
	kubeconfig := strings.ReplaceAll(read(t, o.Kubeconfig), authority, root.Write(t, "ca.crt", read(t, authority)))
	o.Kubeconfig = root.Write(t, "kubeconfig", kubeconfig)
	return o
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// create creates services and their slices.
func (r *rig) create(t *testing.T, services ...objects.Service) {
	t.Helper()
	r.Create(t, []byte(objects.Documents(t, services...)))
}

// updateSlice makes the endpoints of s those that the API server has.
func (r *rig) updateSlice(t *testing.T, s objects.Service) {
	t.Helper()
	_, err := r.admin.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Update(t.Context(), s.Slice(), metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// updateService makes s itself what the API server has.
func (r *rig) updateService(t *testing.T, s objects.Service) {
	t.Helper()
	_, err := r.admin.CoreV1().Services(metav1.NamespaceDefault).Update(t.Context(), s.Object(), metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// remove deletes s and its slice.
func (r *rig) remove(t *testing.T, s objects.Service) {
	t.Helper()
	r.removeService(t, s)
	r.removeSlice(t, s)
}

func (r *rig) removeService(t *testing.T, s objects.Service) {
	t.Helper()
	if err := r.admin.CoreV1().Services(metav1.NamespaceDefault).Delete(t.Context(), s.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) removeSlice(t *testing.T, s objects.Service) {
	t.Helper()
	if err := r.admin.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Delete(t.Context(), s.Slice().Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// becomes waits until a pod's connections to s are answered by a place.
func (r *rig) becomes(t *testing.T, s objects.Service, place string) {
	t.Helper()
	labtest.Becomes(t, r.Pods[0], "tcp", s.ClusterIP(), labtest.By(place))
}

// ends waits until a pod's connections to s end so.
func (r *rig) ends(t *testing.T, s objects.Service, kind lab.Kind) {
	t.Helper()
	labtest.Becomes(t, r.Pods[0], "tcp", s.ClusterIP(), labtest.Ends(kind))
}

// at is a service with these endpoints.
func at(name string, number int, places ...*lab.Place) objects.Service {
	return objects.Service{Name: name, Number: number, Endpoints: objects.At(places...)}
}

// probe connects to services 200 times a second.
func probe(from *lab.Place, services ...objects.Service) (all labtest.Probes) {
	for _, s := range services {
		all = append(all, from.Probe("tcp", s.ClusterIP(), lab.ProbeOptions{Rate: 200 / len(services)}))
	}
	return all
}
