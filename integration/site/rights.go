package site

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nlproxy/nlproxy/integration/cluster"
)

// Account is the name of the daemon's service account.
const Account = "nlproxy"

// Allow lets the service account list and watch a resource, and no more, by a
// role and a binding of its own, which are named Account-resource.
func (s *Site) Allow(t testing.TB, group, resource string) {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: Account + "-" + resource},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"list", "watch"}, APIGroups: []string{group}, Resources: []string{resource}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta,
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: Account}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}
	rbac := s.Client(t, cluster.Admin).RbacV1()
	if _, err := rbac.ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	if _, err := rbac.ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
