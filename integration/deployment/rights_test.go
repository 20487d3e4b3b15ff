package deployment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nlproxy/nlproxy/integration/cluster"
	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/objects"
)

// A right is to do something with objects of a kind.
type right struct{ group, resource, verb string }

func (r right) String() string { return r.verb + " " + r.resource }

// denied is how the API server says that it is missing.
func (r right) denied() string {
	return fmt.Sprintf("cannot %s resource %q in API group %q", r.verb, r.resource, r.group)
}

// rightsOf are those that a role gives, one by one.
func rightsOf(t *testing.T, role *rbacv1.ClusterRole) (all []right) {
	t.Helper()
	for _, rule := range role.Rules {
		if len(rule.NonResourceURLs)+len(rule.ResourceNames) > 0 {
			t.Fatalf("this rule is not gone through: %v", rule)
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, right{group, resource, verb})
				}
			}
		}
	}
	return all
}

// give makes these the rights of the shipped role, and waits until the API
// server goes by them.
func (r *rig) give(t *testing.T, role *rbacv1.ClusterRole, given []right, without right) {
	t.Helper()
	role = role.DeepCopy()
	role.Rules = nil
	for _, g := range given {
		if g != without {
			role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{g.group}, Resources: []string{g.resource}, Verbs: []string{g.verb}})
		}
	}
	if _, err := r.admin.RbacV1().ClusterRoles().Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, g := range given {
		r.awaitRight(t, g, g != without)
	}
}

func (r *rig) awaitRight(t *testing.T, g right, want bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	reviews := r.Client(t, cluster.ServiceAccount).AuthorizationV1().SelfSubjectAccessReviews()
	question := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: g.verb, Group: g.group, Resource: g.resource},
	}}
	for {
		answer, err := reviews.Create(ctx, question, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if answer.Status.Allowed == want {
			return
		}
	}
}

// TestShippedRoleIsEnoughAndNoMore goes through all that needs a right: with
// the whole role, and with each right missing.
func TestShippedRoleIsEnoughAndNoMore(t *testing.T) {
	r := newRig(t)
	all := decoded(t, manifest(t, shipped()...))
	r.apply(t, all)
	role := one[*rbacv1.ClusterRole](t, all)
	given := rightsOf(t, role)
	if len(given) < 8 {
		t.Fatalf("only %d rights: %v", len(given), given)
	}
	r.give(t, role, given, right{})
	t.Run("whole", func(t *testing.T) { r.uses(t, given, right{}) })
	for _, missing := range given {
		r.give(t, role, given, missing)
		t.Run("without "+missing.String(), func(t *testing.T) { r.uses(t, given, missing) })
	}
}

// uses runs a daemon until it has used each right, or met the one that is
// missing.
func (r *rig) uses(t *testing.T, given []right, missing right) {
	o := daemon.Options{
		Namespace:  r.Self.Namespace,
		Config:     daemon.Configuration(10 * time.Millisecond),
		Kubeconfig: r.Kubeconfig(t, cluster.ServiceAccount),
	}
	if missing.verb == "list" {
		// As with an API server that cannot stream lists.
		o.Environment = []string{"KUBE_FEATURE_WatchListClient=false"}
	}
	d := daemon.Start(t, o)
	defer d.Kill()
	denied := func() {
		d.Await(t, "that it may not "+missing.String(), func(e daemon.Entry) bool { return strings.Contains(e.Error, missing.denied()) })
	}
	if missing.verb == "list" || missing.verb == "watch" {
		denied()
		return
	}
	defer r.blockPort(t)()
	d.Await(t, "that there is nothing to do", serves(1)) // but the API server
	switch missing.verb {
	case "create":
		r.createChecked(t)
		denied()
	case "":
		r.failTwice(t, d)
		r.awaitEvent(t, "the count of an event", func(e eventsv1.Event) bool { return e.Series != nil && e.Series.Count == 2 })
		checkAllowed(t, d, given)
	default: // patch, and what nothing asks for
		r.failTwice(t, d)
		denied()
	}
	r.removeChecked(t)
}

// checkAllowed fails t if the daemon has missed a right.
func checkAllowed(t *testing.T, d *daemon.Daemon, given []right) {
	t.Helper()
	for _, e := range d.Entries() {
		if strings.Contains(e.Line, "forbidden") || slices.ContainsFunc(given, func(g right) bool { return strings.Contains(e.Line, g.denied()) }) {
			t.Errorf("the role is not enough: %s", e.Line)
		}
	}
}

// serves matches the report of a synchronisation with n services.
func serves(n int) func(daemon.Entry) bool {
	return func(e daemon.Entry) bool { return daemon.IsReport(e) && e.Services == n }
}

// healthPort is where nlproxy is to answer for a service.
const healthPort = 32100

// blockPort listens at healthPort, so that nlproxy cannot, and removes events
// that tell of that.
func (r *rig) blockPort(t *testing.T) (unblock func()) {
	t.Helper()
	listener, err := r.Self.Namespace.Listen("tcp", fmt.Sprintf(":%d", healthPort))
	if err != nil {
		t.Fatal(err)
	}
	events := r.admin.EventsV1().Events(metav1.NamespaceDefault)
	if err := events.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	return func() { listener.Close() }
}

// failTwice makes an event about healthPort, and the same once more.
func (r *rig) failTwice(t *testing.T, d *daemon.Daemon) {
	t.Helper()
	r.createChecked(t)
	r.awaitEvent(t, "an event about the port", func(eventsv1.Event) bool { return true })
	d.Await(t, "the service", serves(2))
	r.removeChecked(t)
	d.Await(t, "that the service is gone", serves(1))
	r.createChecked(t)
}

// createChecked creates a service whose health is to be told at healthPort.
func (r *rig) createChecked(t *testing.T) {
	t.Helper()
	s := objects.Service{Name: "checked", Number: 9, Type: corev1.ServiceTypeLoadBalancer, Endpoints: objects.At(r.Pods[1])}.Object()
	s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	s.Spec.HealthCheckNodePort = healthPort
	if _, err := r.admin.CoreV1().Services(s.Namespace).Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) removeChecked(t *testing.T) {
	t.Helper()
	if err := r.admin.CoreV1().Services(metav1.NamespaceDefault).Delete(t.Context(), "checked", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// awaitEvent waits for an event about the checked service.
func (r *rig) awaitEvent(t *testing.T, what string, match func(eventsv1.Event) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		list, err := r.admin.EventsV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatalf("%s has not come: %v", what, err)
		}
		if slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.Name == "checked" && match(e) }) {
			return
		}
	}
}
