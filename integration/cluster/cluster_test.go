package cluster_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nlproxy/nlproxy/integration/cluster"
	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/golden"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
)

func TestMain(m *testing.M) { cluster.Main(m) }

func TestAPIServerKeepsObjectsWhenItIsKilled(t *testing.T) {
	c := cluster.Start(t, labtest.Namespace(t), cluster.Options{})
	services := c.Client(t, cluster.Admin).CoreV1().Services("default")
	web := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.96.3.10", Ports: []corev1.ServicePort{{Port: 80}}},
	}
	if _, err := services.Create(t.Context(), web, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.KillAPIServer()
	if _, err := services.Get(t.Context(), "web", metav1.GetOptions{}); err == nil {
		t.Error("the API server answers after it was killed")
	}
	c.StartAPIServer(t)
	got, err := services.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Spec.ClusterIP != web.Spec.ClusterIP {
		t.Errorf("cluster IP %s, want %s", got.Spec.ClusterIP, web.Spec.ClusterIP)
	}
}

func TestUsersMayDoWhatTheirRolesAllow(t *testing.T) {
	c := cluster.Start(t, labtest.Namespace(t), cluster.Options{})
	for _, u := range []struct {
		user                    cluster.User
		mayList, mayMakeService bool
	}{
		{cluster.Admin, true, true},
		{cluster.KubeProxy, true, false},
		{cluster.ServiceAccount, false, false},
	} {
		services := c.Client(t, u.user).CoreV1().Services("default")
		_, err := services.List(t.Context(), metav1.ListOptions{})
		if apierrors.IsForbidden(err) == u.mayList {
			t.Errorf("%s lists services: %v", u.user, err)
		}
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "made"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}
		_, err = services.Create(t.Context(), service, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) == u.mayMakeService {
			t.Errorf("%s creates a service: %v", u.user, err)
		}
	}
}

func TestKubeProxyWritesTheGoldenRules(t *testing.T) {
	one := golden.Named(t, "16-dual-stack")
	ns := golden.Namespace(t)
	c := cluster.Start(t, ns, cluster.Options{})
	c.Create(t, one.Objects)
	c.StartKubeProxy(t, one.Config)
	golden.Await(t, ns, one.Want)
}

// Each backend's rules are where they belong, and nowhere else.
func TestKubeProxyWritesByItsBackend(t *testing.T) {
	for _, one := range []struct {
		backend      cluster.Backend
		mode         string
		program      string
		has, hasNone string
	}{
		{cluster.IPTablesLegacy, "iptables", "iptables-legacy-save", ":KUBE-SERVICES", ""},
		{cluster.NFTables, "nftables", "nft list ruleset", "table ip kube-proxy", "KUBE-SERVICES"},
		{cluster.OnlyNFTables, "nftables", "nft list ruleset", "table ip6 kube-proxy", "KUBE-SERVICES"},
	} {
		t.Run(string(one.backend), func(t *testing.T) {
			ns := golden.Namespace(t)
			c := cluster.Start(t, ns, cluster.Options{})
			c.Create(t, []byte(objects.YAML(t, objects.Node())))
			config := strings.Replace(daemon.Configuration(time.Second), "mode: iptables", "mode: "+one.mode, 1)
			c.StartKubeProxyOn(t, one.backend, []byte(config))
			words := strings.Fields(one.program)
			got := labtest.Run(t, ns, "", words[0], words[1:]...)
			if !strings.Contains(got, one.has) || one.hasNone != "" && strings.Contains(got, one.hasNone) {
				t.Errorf("%s printed:\n%s", one.program, got)
			}
			if one.backend == cluster.IPTablesLegacy {
				if got := labtest.Run(t, ns, "", "nft", "list", "ruleset"); got != "" {
					t.Errorf("nf_tables has:\n%s", got)
				}
			}
		})
	}
}
