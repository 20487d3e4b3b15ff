package node

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/nlproxy/nlproxy/integration/cluster"
	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/objects"
	"github.com/nlproxy/nlproxy/integration/site"
)

func TestMain(m *testing.M) { site.Main(m) }

// A rig is a site whose API server lets the daemon read what it needs, and that
// knows no Node yet.
type rig struct {
	*site.Site
	admin kubernetes.Interface
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{Site: site.New(t, site.Options{Networks: []string{"tcp"}, Unknown: true})}
	r.admin = r.Client(t, cluster.Admin)
	for resource, group := range map[string]string{"services": "", "nodes": "", "endpointslices": "discovery.k8s.io"} {
		r.Allow(t, group, resource)
	}
	return r
}

// options are those of a daemon whose configuration has been changed by pairs
// of what is replaced and by what.
func (r *rig) options(t *testing.T, replace ...string) daemon.Options {
	t.Helper()
	o := r.Options(t, cluster.ServiceAccount, 10*time.Millisecond)
	o.Config = strings.NewReplacer(replace...).Replace(o.Config)
	return o
}

// strict are the changes by which node ports are served on the Node's addresses
// alone, and pods known by its ranges.
var strict = []string{"clusterCIDR: 10.244.0.0/16,fd00:244::/32", "detectLocalMode: NodeCIDR\nnodePortAddresses: [primary]"}

// create creates a Node as it is given, its status included.
func (r *rig) createNode(t *testing.T, n *corev1.Node) {
	t.Helper()
	r.Create(t, []byte(objects.YAML(t, n)))
}

func (r *rig) deleteNode(t *testing.T) {
	t.Helper()
	if err := r.admin.CoreV1().Nodes().Delete(t.Context(), objects.Here, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// zoned is the Node in a zone, with an address and a range of pods.
func zoned(zone, address, pods string) *corev1.Node {
	n := objects.Node()
	n.Labels = map[string]string{corev1.LabelTopologyZone: zone}
	n.Spec.PodCIDR, n.Spec.PodCIDRs = pods, []string{pods}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	return n
}
