package node

import (
	"os"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nlproxy/nlproxy/integration/cluster"
	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
	"github.com/nlproxy/nlproxy/integration/site"
)

// mounted is where a pod has its service account.
const mounted = "/var/run/secrets/kubernetes.io/serviceaccount/"

// token makes the service account, or makes it anew, and returns a token of it,
// of the kind that a kubelet gets for a pod. Tokens from before are void.
func (r *rig) token(t *testing.T) string {
	t.Helper()
	accounts := r.admin.CoreV1().ServiceAccounts(metav1.NamespaceSystem)
	// There is none at first.
	_ = accounts.Delete(t.Context(), site.Account, metav1.DeleteOptions{})
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: site.Account}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	request, err := accounts.CreateToken(t.Context(), site.Account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// TestAPodsAccountIsUsedAndItsRenewedTokenRead runs a daemon as in a pod, whose
// token becomes void and is renewed.
func TestAPodsAccountIsUsedAndItsRenewedTokenRead(t *testing.T) {
	r := newRig(t)
	r.createNode(t, objects.Node())
	web := r.web(t)
	root := daemon.NewRoot(t)
	o := r.options(t)
	o.Root, o.Kubeconfig = root, ""
	o.Environment = []string{"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=6443"}

	ends(t, o, mounted+"ca.crt: no such file")
	root.Write(t, mounted+"ca.crt", r.authority(t))
	ends(t, o, mounted+"token: no such file")
	root.Write(t, mounted+"token", r.token(t))
	d := daemon.Start(t, o)
	labtest.Becomes(t, r.Pods[0], "tcp", web.ClusterIP(), labtest.By("pod-2", "remote-1"))

	renewed := r.token(t)
	r.KillAPIServer() // and with it the watches, for which the old token was good
	r.StartAPIServer(t)
	refused := d.Await(t, "that its token is refused", func(e daemon.Entry) bool {
		return saying("Unauthorized")(e) && saying("token in "+mounted+"token")(e)
	})
	second := objects.Service{Name: "second", Number: 2, Endpoints: objects.At(r.Pods[1])}
	r.Create(t, []byte(objects.Documents(t, second)))
	labtest.Answers(t, r.Pods[0], "tcp", web.ClusterIP(), "pod-2", "remote-1")
	root.Write(t, mounted+"token", renewed)
	labtest.Becomes(t, r.Pods[0], "tcp", second.ClusterIP(), labtest.By("pod-2"))
	t.Log(refused.Line)
}

// authority is what the API server's certificate is signed by.
func (r *rig) authority(t *testing.T) string {
	t.Helper()
	certificate, err := os.ReadFile(r.Config(cluster.Admin).CAFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(certificate)
}

// ends checks that a daemon ends by itself with code 1 and one line, which says
// why.
func ends(t *testing.T, o daemon.Options, why string) {
	t.Helper()
	d := daemon.Start(t, o)
	code, entries := d.ExitCode(t), d.Entries()
	if code != 1 || len(entries) != 1 || !strings.Contains(entries[0].Line, why) {
		t.Errorf("ended with code %d, want 1 and a line with %q: %v", code, why, entries)
	}
}
