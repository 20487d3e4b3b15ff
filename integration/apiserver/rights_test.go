package apiserver

import (
	"context"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nlproxy/nlproxy/integration/cluster"
	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
	"github.com/nlproxy/nlproxy/integration/site"
)

// A resource is what a role lets somebody list and watch. The daemon's log
// calls it by its kind.
type resource struct{ group, name, kind string }

// needed are all that the daemon reads.
var needed = []resource{
	{"", "services", "service"},
	{"discovery.k8s.io", "endpointslices", "endpointslice"},
	{"", "nodes", "node"},
}

// allow lets the service account list and watch resources.
func (r *rig) allow(t *testing.T, resources ...resource) {
	t.Helper()
	for _, one := range resources {
		r.Allow(t, one.group, one.name)
	}
}

// forbid takes a right away, and waits until the API server has noticed.
func (r *rig) forbid(t *testing.T, one resource) {
	t.Helper()
	if err := r.admin.RbacV1().ClusterRoleBindings().Delete(t.Context(), site.Account+"-"+one.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	reviews := r.Client(t, cluster.ServiceAccount).AuthorizationV1().SelfSubjectAccessReviews()
	question := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Group: one.group, Resource: one.name},
	}}
	for {
		answer, err := reviews.Create(ctx, question, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !answer.Status.Allowed {
			return
		}
	}
}

// TestNothingIsWrittenBeforeEveryListHasArrived lets a daemon start that may
// not read one kind at first.
func TestNothingIsWrittenBeforeEveryListHasArrived(t *testing.T) {
	r := newRig(t)
	web := at("web", 1, r.Pods[1])
	r.create(t, web)
	for i, missing := range needed {
		t.Run(missing.name, func(t *testing.T) { r.startWithout(t, missing, web, at("old-"+missing.kind, 2+i, r.Pods[1])) })
	}
}

func (r *rig) startWithout(t *testing.T, missing resource, web, old objects.Service) {
	r.create(t, old)
	d := daemon.Start(t, r.options(t))
	r.becomes(t, old, "pod-2")
	d.Kill()
	r.forbid(t, missing)
	r.remove(t, old)
	generation := daemon.Generation(t, r.Self.Namespace)
	probing := probe(r.Pods[0], web, old)

	d = daemon.Start(t, r.options(t))
	denied := d.Await(t, "that it may not list", func(e daemon.Entry) bool { return e.Kind == missing.kind && e.Error != "" })
	probing.Pass(t, 200)
	for _, e := range d.Entries() {
		if daemon.IsReport(e) {
			t.Errorf("synchronised without %s: %s", missing.name, e.Line)
		}
	}
	if now := daemon.Generation(t, r.Self.Namespace); now != generation {
		t.Errorf("generation %d without %s, before %d", now, missing.name, generation)
	}
	t.Logf("%s; meanwhile %d probes", denied.Error, probing.Stop(t))

	r.allow(t, missing)
	if report := d.Synchronised(t); report.Services != 2 { // web and that of the API server
		t.Errorf("more services than there are: %s", report.Line)
	}
	r.ends(t, old, lab.Unreachable)
	labtest.Answers(t, r.Pods[0], "tcp", web.ClusterIP(), "pod-2")
	d.Kill()
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
