package deployment

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/nlproxy/nlproxy/integration/cluster"
	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/objects"
	"github.com/nlproxy/nlproxy/integration/site"
)

func TestMain(m *testing.M) {
	daemon.BuildImage()
	site.Main(m)
}

// server is the API server of package cluster.
const server = "https://127.0.0.1:6443"

// A rig is a site with an administrator.
type rig struct {
	*site.Site
	admin kubernetes.Interface
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{Site: site.New(t, site.Options{Pods: 3, Networks: []string{"tcp"}})}
	r.admin = r.Client(t, cluster.Admin)
	return r
}

// manifest is what a command of nlproxy manifest prints.
func manifest(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(daemon.Binary(t), append([]string{"manifest"}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	return string(out)
}

// decoded reads documents, in which nothing may be unknown or there twice.
func decoded(t *testing.T, documents string) (all []runtime.Object) {
	t.Helper()
	codecs := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict)
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(documents)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if onlyComments(document) {
			continue
		}
		object, _, err := codecs.UniversalDeserializer().Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		all = append(all, object)
	}
}

func onlyComments(document []byte) bool {
	for line := range bytes.Lines(document) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// one is the only object of its type.
func one[T runtime.Object](t *testing.T, all []runtime.Object) (found T) {
	t.Helper()
	n := 0
	for _, object := range all {
		if o, ok := object.(T); ok {
			found, n = o, n+1
		}
	}
	if n != 1 {
		t.Fatalf("%d objects %T", n, found)
	}
	return found
}

// apply creates objects.
func (r *rig) apply(t *testing.T, all []runtime.Object) {
	t.Helper()
	for _, object := range all {
		if err := r.createOne(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// createOne creates an object, without fields that the API server does not know.
func (r *rig) createOne(ctx context.Context, object runtime.Object, dryRun ...string) (err error) {
	strict := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun}
	switch o := object.(type) {
	case *corev1.ServiceAccount:
		_, err = r.admin.CoreV1().ServiceAccounts(o.Namespace).Create(ctx, o, strict)
	case *corev1.ConfigMap:
		_, err = r.admin.CoreV1().ConfigMaps(o.Namespace).Create(ctx, o, strict)
	case *rbacv1.ClusterRole:
		_, err = r.admin.RbacV1().ClusterRoles().Create(ctx, o, strict)
	case *rbacv1.ClusterRoleBinding:
		_, err = r.admin.RbacV1().ClusterRoleBindings().Create(ctx, o, strict)
	case *appsv1.DaemonSet:
		_, err = r.admin.AppsV1().DaemonSets(o.Namespace).Create(ctx, o, strict)
	default:
		err = fmt.Errorf("no kind of nlproxy manifest: %T", object)
	}
	return err
}

// updateSlice makes the endpoints of s those that the API server has.
func (r *rig) updateSlice(t *testing.T, s objects.Service) {
	t.Helper()
	_, err := r.admin.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Update(t.Context(), s.Slice(), metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// volumes are the files that a pod's volumes hold: those of a ConfigMap, and
// the credentials of its service account.
func (r *rig) volumes(t *testing.T, c *corev1.ConfigMap) map[string]string {
	t.Helper()
	authority, err := os.ReadFile(r.Config(cluster.ServiceAccount).CAFile)
	if err != nil {
		t.Fatal(err)
	}
	const account = "/var/run/secrets/kubernetes.io/serviceaccount/"
	files := map[string]string{
		account + "token":  string(cluster.ServiceAccount),
		account + "ca.crt": string(authority),
	}
	for name, content := range c.Data {
		files[filepath.Join("/var/lib/kube-proxy", name)] = content
	}
	return files
}

// command is a container's command on the node of the lab.
func command(c corev1.Container) (words []string) {
	for _, word := range c.Command {
		words = append(words, strings.ReplaceAll(word, "$(NODE_NAME)", objects.Here))
	}
	return words
}
