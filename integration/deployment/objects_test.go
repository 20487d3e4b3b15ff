package deployment

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/nlproxy/nlproxy/integration/cluster"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
)

// variants are the flags of all kinds of objects that there are.
func variants() map[string][]string {
	return map[string][]string{
		"service address":    nil,
		"server":             shipped(),
		"with init":          shipped("--with-init"),
		"takeover":           {"--takeover"},
		"takeover with init": {"--takeover", "--with-init"},
	}
}

func TestAPIServerTakesTheObjects(t *testing.T) {
	r := newRig(t)
	for name, flags := range variants() {
		all := decoded(t, manifest(t, flags...))
		for _, object := range all {
			// A dry run does all but storing, so each variant is new.
			if err := r.createOne(t.Context(), object, metav1.DryRunAll); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if want := 5 - strings.Count(strings.Join(flags, " "), "takeover"); len(all) != want {
			t.Errorf("%s: %d objects, want %d", name, len(all), want)
		}
	}
}

// kubectl runs kubectl as the administrator, in a folder.
func (r *rig) kubectl(t *testing.T, dir string, args ...string) string {
	t.Helper()
	labtest.Tools(t, "kubectl")
	cmd := exec.Command("kubectl", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+r.Kubeconfig(t, cluster.Admin), "HOME="+dir)
	var out []byte
	err := r.Self.Namespace.Do(func() (err error) {
		out, err = cmd.CombinedOutput()
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// TestKustomizeMakesTheSameObjects also puts another image in place of ours, and
// the objects into another namespace.
func TestKustomizeMakesTheSameObjects(t *testing.T) {
	labtest.Tools(t, "kubectl")
	for name, flags := range variants() {
		dir := t.TempDir()
		manifest(t, append(flags, "--output-dir="+filepath.Join(dir, "base"))...)
		out := labtest.Run(t, labtest.Current(t), "", "kubectl", "kustomize", filepath.Join(dir, "base"))
		want, got := decoded(t, manifest(t, flags...)), decoded(t, out)
		sortByKind(want)
		sortByKind(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-stream +base):\n%s", name, diff)
		}
		// The older name of resources, which is all that kubectl 1.20 knows for a folder.
		over := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nbases: [base]\nnamespace: network\n" +
			"images: [{name: nlproxy, newName: registry.example.com/nlproxy, newTag: v1}]\n"
		if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(over), 0o644); err != nil {
			t.Fatal(err)
		}
		all := decoded(t, labtest.Run(t, labtest.Current(t), "", "kubectl", "kustomize", dir))
		pod := one[*appsv1.DaemonSet](t, all).Spec.Template.Spec
		for _, c := range append(pod.InitContainers, pod.Containers...) {
			if c.Image != "registry.example.com/nlproxy:v1" {
				t.Errorf("%s: image %s in place of ours", name, c.Image)
			}
		}
		checkNamespace(t, all, "network")
	}
}

// steps are the commands that a text of comments has after a line that begins
// so, until the next line that begins a sentence of steps.
func steps(t *testing.T, text, begin string) (commands []string) {
	t.Helper()
	_, text, found := strings.Cut(text, "\n# "+begin)
	if !found {
		t.Fatalf("no %q in:\n%s", begin, text)
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		command, ok := strings.CutPrefix(line, "#      kubectl ")
		switch {
		case ok:
			commands = append(commands, command)
		case len(commands) > 0 && line != "#":
			return commands
		}
	}
	return commands
}

// follow does what comments say. There is no controller that starts pods, so
// nobody waits for them.
func (r *rig) follow(t *testing.T, dir string, commands []string) {
	t.Helper()
	if len(commands) == 0 {
		t.Error("there is no command to follow")
	}
	for _, command := range commands {
		if strings.Contains(command, " rollout status ") {
			continue
		}
		r.kubectl(t, dir, words(strings.ReplaceAll(command, "NODE", objects.Here))...)
	}
}

// words splits a command as a shell does that knows single quotes alone.
func words(command string) (all []string) {
	for i, part := range strings.Split(command, "'") {
		if i%2 == 1 {
			all = append(all, part)
			continue
		}
		all = append(all, strings.Fields(part)...)
	}
	return all
}

func TestCommandsInTheCommentsMoveNodesThereAndBack(t *testing.T) {
	r := newRig(t)
	r.installKubeProxy(t)
	dir := t.TempDir()
	text := manifest(t, "--takeover")
	if err := os.WriteFile(filepath.Join(dir, "nlproxy.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r.onNode(t, "kube-proxy")
	r.follow(t, dir, steps(t, text, "1. "))
	r.onNode(t, "kube-proxy")
	r.follow(t, dir, steps(t, text, "2. "))
	r.onNode(t, "kube-proxy")
	r.follow(t, dir, steps(t, text, "3. "))
	r.onNode(t, "nlproxy")
	r.follow(t, dir, steps(t, text, "The way back"))
	r.onNode(t, "kube-proxy")
	r.follow(t, dir, steps(t, text, "and for the cluster"))
	if r.daemonSet(t, "nlproxy") != nil || r.daemonSet(t, "kube-proxy").Spec.Template.Spec.Affinity != nil {
		t.Error("something is left after the way back")
	}
	for _, n := range []string{"1. ", "2. ", "3. ", "To stay"} {
		r.follow(t, dir, steps(t, text, n))
	}
	r.onNode(t, "nlproxy")
	r.kubectl(t, dir, "label", "node", objects.Here, "service-proxy-") // a node that comes later
	r.onNode(t, "nlproxy")
	if _, err := r.admin.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(t.Context(), "kube-proxy", metav1.GetOptions{}); err != nil {
		t.Errorf("what nlproxy reads is gone: %v", err)
	}
}

func TestCommandsInTheCommentsInstall(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	manifest(t, append(shipped(), "--output-dir="+filepath.Join(dir, "base"))...)
	about, err := os.ReadFile(filepath.Join(dir, "base", "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r.follow(t, dir, []string{strings.TrimPrefix(applyLine(t, string(about)), "kubectl ")})
	r.onNode(t, "nlproxy")
}

// applyLine is the only command that applies something.
func applyLine(t *testing.T, text string) string {
	t.Helper()
	var found []string
	for line := range strings.Lines(text) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), "#   kubectl apply "); ok {
			found = append(found, "kubectl apply "+command)
		}
	}
	if len(found) != 1 {
		t.Fatalf("commands %q", found)
	}
	return found[0]
}

// installKubeProxy creates what kubeadm does, as far as nlproxy touches it.
func (r *rig) installKubeProxy(t *testing.T) {
	t.Helper()
	named := metav1.ObjectMeta{Name: "kube-proxy", Namespace: metav1.NamespaceSystem, Labels: map[string]string{"k8s-app": "kube-proxy"}}
	_, err := r.admin.CoreV1().ConfigMaps(named.Namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: named}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d := &appsv1.DaemonSet{ObjectMeta: named, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: named.Labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: named.Labels},
			Spec: corev1.PodSpec{
				Containers:   []corev1.Container{{Name: "kube-proxy", Image: "kube-proxy", Command: kubeadmCommand}},
				NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
			},
		},
	}}
	if _, err := r.admin.AppsV1().DaemonSets(named.Namespace).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// daemonSet is nil if there is none of that name.
func (r *rig) daemonSet(t *testing.T, name string) *appsv1.DaemonSet {
	t.Helper()
	d, err := r.admin.AppsV1().DaemonSets(metav1.NamespaceSystem).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// onNode fails t unless of nlproxy and kube-proxy this one alone runs on the
// node, as labels have it.
func (r *rig) onNode(t *testing.T, want string) {
	t.Helper()
	node, err := r.admin.CoreV1().Nodes().Get(t.Context(), objects.Here, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, name := range []string{"kube-proxy", "nlproxy"} {
		if d := r.daemonSet(t, name); d != nil && mayRunOn(t, d, node.Labels) {
			got = append(got, name)
		}
	}
	if !slices.Equal(got, []string{want}) {
		t.Errorf("on the node runs %q, want %s", got, want)
	}
}

// mayRunOn asks the node selector and what is required of the node's labels.
func mayRunOn(t *testing.T, d *appsv1.DaemonSet, node labels.Set) bool {
	t.Helper()
	pod := d.Spec.Template.Spec
	if !labels.SelectorFromSet(pod.NodeSelector).Matches(node) {
		return false
	}
	if pod.Affinity == nil {
		return true
	}
	for _, term := range pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			requirement, err := labels.NewRequirement(e.Key, operators[e.Operator], e.Values)
			if err != nil {
				t.Fatal(err)
			}
			if !requirement.Matches(node) {
				return false
			}
		}
	}
	return true
}

var operators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn:    selection.In,
	corev1.NodeSelectorOpNotIn: selection.NotIn,
}

func kind(o runtime.Object) string { return o.GetObjectKind().GroupVersionKind().Kind }

func sortByKind(all []runtime.Object) {
	slices.SortFunc(all, func(a, b runtime.Object) int { return strings.Compare(kind(a), kind(b)) })
}

// checkNamespace fails t for an object, or a subject of a binding, that is in
// another namespace.
func checkNamespace(t *testing.T, all []runtime.Object, want string) {
	t.Helper()
	for _, o := range all {
		named, err := meta.Accessor(o)
		if err != nil {
			t.Fatal(err)
		}
		if got := named.GetNamespace(); got != want && !strings.HasPrefix(kind(o), "ClusterRole") {
			t.Errorf("%s is in namespace %q, want %s", kind(o), got, want)
		}
	}
	if got := one[*rbacv1.ClusterRoleBinding](t, all).Subjects[0].Namespace; got != want {
		t.Errorf("the role is bound in namespace %q, want %s", got, want)
	}
}
