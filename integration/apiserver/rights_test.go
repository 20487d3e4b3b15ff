package apiserver

import (
	"context"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nlproxy/nlproxy/integration/cluster"
	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
)

// A resource is what a role lets somebody list and watch.
type resource struct{ group, name string }

var (
	serviceKind = resource{"", "services"}
	sliceKind   = resource{"discovery.k8s.io", "endpointslices"}
	nodeKind    = resource{"", "nodes"}
)

// allow lets the service account list and watch resources, and no more, each
// by a role of its own.
func (r *rig) allow(t *testing.T, resources ...resource) {
	t.Helper()
	for _, one := range resources {
		role := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "nlproxy-" + one.name},
			Rules:      []rbacv1.PolicyRule{{Verbs: []string{"list", "watch"}, APIGroups: []string{one.group}, Resources: []string{one.name}}},
		}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: role.ObjectMeta,
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "kube-system", Name: "nlproxy"}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		}
		rbac := r.admin.RbacV1()
		if _, err := rbac.ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		if _, err := rbac.ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// forbidSlices takes the right to read slices away, and waits until the API
// server has noticed.
func (r *rig) forbidSlices(t *testing.T) {
	t.Helper()
	if err := r.admin.RbacV1().ClusterRoleBindings().Delete(t.Context(), "nlproxy-"+sliceKind.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	account := r.Client(t, cluster.ServiceAccount).DiscoveryV1().EndpointSlices("")
	for {
		if _, err := account.List(ctx, metav1.ListOptions{Limit: 1}); apierrors.IsForbidden(err) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestNothingIsWrittenBeforeEveryListHasArrived(t *testing.T) {
	r := newRig(t)
	web, old := at("web", 1, r.Pods[1]), at("old", 2, r.Pods[1])
	r.create(t, web, old)
	d := daemon.Start(t, r.options(t))
	d.Synchronised(t)
	r.becomes(t, web, "pod-2")
	r.becomes(t, old, "pod-2")
	d.Kill()
	r.forbidSlices(t)
	r.remove(t, old)
	generation := daemon.Generation(t, r.Self.Namespace)
	probing := probe(r.Pods[0], web, old)

	d = daemon.Start(t, r.options(t))
	denied := d.Await(t, "that it may not list slices", func(e daemon.Entry) bool {
		return e.Kind == "endpointslice" && e.Error != ""
	})
	t.Log(denied.Line)
	probing.Pass(t, 200)
	for _, e := range d.Entries() {
		if daemon.IsReport(e) {
			t.Errorf("synchronised without slices: %s", e.Line)
		}
	}
	if now := daemon.Generation(t, r.Self.Namespace); now != generation {
		t.Errorf("generation %d without slices, before %d", now, generation)
	}
	t.Logf("%d probes while the list of slices is missing, of which none failed", probing.Stop(t))

	r.allow(t, sliceKind)
	report := d.Synchronised(t)
	if report.Services != 2 { // web and that of the API server
		t.Errorf("%d services: %s", report.Services, report.Line)
	}
	r.ends(t, old, lab.Unreachable)
	labtest.Answers(t, r.Pods[0], "tcp", web.ClusterIP(), "pod-2")
}

func TestNodeThatDoesNotExistEndsTheDaemon(t *testing.T) {
	r := newRig(t)
	web := at("web", 1, r.Pods[1])
	r.create(t, web)
	d := daemon.Start(t, r.options(t))
	d.Synchronised(t)
	d.Kill()
	generation := daemon.Generation(t, r.Self.Namespace)

	o := r.options(t)
	o.Config = strings.Replace(o.Config, objects.Here, "nowhere", 1)
	begin := time.Now()
	d = daemon.Start(t, o)
	code := d.ExitCode(t)
	took := time.Since(begin)
	entries := d.Entries()
	last := entries[len(entries)-1].Line
	if code != 1 || !strings.Contains(last, "there is no node nowhere") {
		t.Errorf("ended with code %d: %s", code, last)
	}
	if took < 25*time.Second || took > 60*time.Second {
		t.Errorf("ended after %s, want about 30 seconds", took)
	}
	if now := daemon.Generation(t, r.Self.Namespace); now != generation {
		t.Errorf("generation %d, before %d", now, generation)
	}
	labtest.Answers(t, r.Pods[0], "tcp", web.ClusterIP(), "pod-2")
	t.Logf("after %s, code %d: %s", took, code, last)
}
