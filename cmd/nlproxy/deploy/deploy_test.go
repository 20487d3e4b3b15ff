package deploy

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/yaml"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
)

// variants are all kinds of objects that there are.
func variants() map[string]Options {
	return map[string]Options{
		"service address":    {Image: DefaultImage},
		"server":             {Image: DefaultImage, Server: "https://192.0.2.10:6443", ClusterCIDR: "10.244.0.0/16,fd00:244::/32"},
		"with init":          {Image: DefaultImage, Server: "https://[2001:db8::1]:6443", Init: true},
		"takeover":           {Image: DefaultImage, Takeover: true},
		"takeover with init": {Image: DefaultImage, Takeover: true, Init: true},
	}
}

// base are the files of a base by their names.
func base(t *testing.T, o Options) map[string]string {
	t.Helper()
	files, err := Base(o, "overlays/base")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range files {
		all[f.Name] = f.Content
	}
	return all
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

func TestTemplatesAreFilledIn(t *testing.T) {
	for name, o := range variants() {
		text, err := Stream(o)
		if err != nil {
			t.Fatal(err)
		}
		for file, content := range base(t, o) {
			if file != "kustomization.yaml" && file != "kube-proxy-patch.yaml" && !strings.Contains(text, "---\n"+content) {
				t.Errorf("%s: the stream has not %s", name, file)
			}
			text += content
		}
		for _, marker := range []string{"{{", "#if ", "#end"} {
			if strings.Contains(text, marker) {
				t.Errorf("%s: %s is left:\n%s", name, marker, text)
			}
		}
	}
}

func TestTemplatesAskForKnownConditionsAlone(t *testing.T) {
	known := []string{"init", "no-init", "no-server", "no-takeover", "server", "takeover"}
	asked := map[string]bool{}
	for _, template := range []string{aboutInstall, aboutTakeover, configMap, daemonSet, kustomization} {
		for line := range strings.Lines(template) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "#if "); ok {
				asked[name] = true
			}
		}
	}
	if got := slices.Sorted(maps.Keys(asked)); !slices.Equal(got, known) {
		t.Errorf("asked for %v, known are %v", got, known)
	}
}

func TestBaseListsItsFiles(t *testing.T) {
	for name, o := range variants() {
		files := base(t, o)
		var kustomization struct {
			APIVersion, Kind string
			Resources        []string
		}
		decode(t, files["kustomization.yaml"], &kustomization)
		delete(files, "kustomization.yaml")
		delete(files, "kube-proxy-patch.yaml")
		slices.Sort(kustomization.Resources)
		if diff := cmp.Diff(slices.Sorted(maps.Keys(files)), kustomization.Resources); diff != "" {
			t.Errorf("%s (-files +resources):\n%s", name, diff)
		}
	}
}

// TestConfigurationIsOneThatTheDaemonTakes also shows that it has nothing to
// complain of.
func TestConfigurationIsOneThatTheDaemonTakes(t *testing.T) {
	for name, o := range variants() {
		if o.Takeover {
			continue
		}
		var object corev1.ConfigMap
		decode(t, base(t, o)["configmap.yaml"], &object)
		if _, ok := object.Data["kubeconfig.conf"]; ok != (o.Server != "") {
			t.Errorf("%s: a kubeconfig: %t", name, ok)
		}
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags := config.Bind(fs)
		if err := fs.Parse([]string{"--config=config.conf", "--hostname-override=node1"}); err != nil {
			t.Fatal(err)
		}
		c, notes, err := flags.Config(func(string) ([]byte, error) { return []byte(object.Data["config.conf"]), nil })
		if err != nil || len(notes) > 0 {
			t.Errorf("%s: %v, %q", name, err, notes)
		}
		var ranges []string
		for _, p := range c.DetectLocal.ClusterCIDRs {
			ranges = append(ranges, p.String())
		}
		if got := strings.Join(ranges, ","); got != o.ClusterCIDR {
			t.Errorf("%s: cluster CIDR %q, want %q", name, got, o.ClusterCIDR)
		}
	}
}

func TestATakeoverServesWhateverModeKubeProxyIsIn(t *testing.T) {
	for name, o := range variants() {
		var set appsv1.DaemonSet
		decode(t, base(t, o)["daemonset.yaml"], &set)
		pod := set.Spec.Template.Spec
		for _, c := range append(pod.InitContainers, pod.Containers...) {
			if got := slices.Contains(c.Command, "--nl-mode=iptables"); got != o.Takeover {
				t.Errorf("%s: container %s has the command %q", name, c.Name, c.Command)
			}
		}
	}
}

// TestEachNodeHasExactlyOneProxy asks of nodes with and without the label.
func TestEachNodeHasExactlyOneProxy(t *testing.T) {
	files := base(t, variants()["takeover"])
	var ours, patch appsv1.DaemonSet
	decode(t, files["daemonset.yaml"], &ours)
	decode(t, files["kube-proxy-patch.yaml"], &patch)
	for label, wantOurs := range map[string]bool{"": false, "nlproxy": true, "kube-proxy": false} {
		node := labels.Set{"kubernetes.io/os": "linux"}
		if label != "" {
			node["service-proxy"] = label
		}
		isOurs := labels.SelectorFromSet(ours.Spec.Template.Spec.NodeSelector).Matches(node)
		isTheirs := mayRunOn(t, patch, node)
		if isOurs != wantOurs || isTheirs == isOurs {
			t.Errorf("a node with label %q: nlproxy %t, kube-proxy %t", label, isOurs, isTheirs)
		}
	}
}

// mayRunOn asks the only expression of a required node affinity.
func mayRunOn(t *testing.T, d appsv1.DaemonSet, node labels.Set) bool {
	t.Helper()
	e := d.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0]
	if e.Operator != corev1.NodeSelectorOpNotIn {
		t.Fatalf("operator %s", e.Operator)
	}
	requirement, err := labels.NewRequirement(e.Key, selection.NotIn, e.Values)
	if err != nil {
		t.Fatal(err)
	}
	return requirement.Matches(node)
}

func TestCommandAndFileOfTheTakeoverPatchAlike(t *testing.T) {
	files := base(t, variants()["takeover"])
	var file struct{ Spec any }
	if err := yaml.Unmarshal([]byte(files["kube-proxy-patch.yaml"]), &file); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(files["kustomization.yaml"], "patch daemonset kube-proxy -p '")
	text, _, _ := strings.Cut(rest, "'")
	var command struct{ Spec any }
	decode(t, text, &command)
	if diff := cmp.Diff(file, command); diff != "" {
		t.Errorf("patch (-file +command):\n%s", diff)
	}
}

func TestPrivilegeIsForTheInitContainerAlone(t *testing.T) {
	for name, o := range variants() {
		var d appsv1.DaemonSet
		decode(t, base(t, o)["daemonset.yaml"], &d)
		pod := d.Spec.Template.Spec
		if got := len(pod.InitContainers) == 1; got != o.Init {
			t.Errorf("%s: an init container: %t", name, got)
		}
		for _, c := range pod.Containers {
			s := c.SecurityContext
			if len(pod.Containers) != 1 || *s.Privileged || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem ||
				!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) ||
				!slices.Equal(s.Capabilities.Add, []corev1.Capability{"NET_ADMIN"}) ||
				pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s: container %s may do too much: %+v", name, c.Name, s)
			}
		}
	}
}

func TestOptionsThatCannotWorkAreNamed(t *testing.T) {
	for _, c := range []struct {
		want string
		o    Options
	}{
		{`--image "": must be an image such as `, Options{}},
		{`--image "nlproxy: v1": must be`, Options{Image: "nlproxy: v1"}},
		{`--image "registry/Upper": must be`, Options{Image: "registry/Upper"}},
		{`--image "nlproxy@sha256:12": must be`, Options{Image: "nlproxy@sha256:12"}},
		{`--server "192.0.2.10:6443": must be the URL of the API server, such as `, Options{Image: DefaultImage, Server: "192.0.2.10:6443"}},
		{`--server "http://192.0.2.10": must be`, Options{Image: DefaultImage, Server: "http://192.0.2.10"}},
		{`--server "https://": must be`, Options{Image: DefaultImage, Server: "https://"}},
		{`--server "https://user@host": must be`, Options{Image: DefaultImage, Server: "https://user@host"}},
		{`--server "https://host/path": must be`, Options{Image: DefaultImage, Server: "https://host/path"}},
		{`--cluster-cidr`, Options{Image: DefaultImage, ClusterCIDR: "10.244.0.0"}},
		{`--takeover: kube-proxy's own ConfigMap is used; leave out`, Options{Image: DefaultImage, Takeover: true, ClusterCIDR: "10.244.0.0/16"}},
		{`--takeover: kube-proxy's own ConfigMap is used; leave out`, Options{Image: DefaultImage, Takeover: true, Server: "https://host"}},
	} {
		_, err := Stream(c.o)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v, want %s", c.o, err, c.want)
		}
		if _, again := Base(c.o, "base"); err != nil && (again == nil || again.Error() != err.Error()) {
			t.Errorf("%+v: as a base %v", c.o, again)
		}
	}
}

func TestImagesOfAllFormsAreTaken(t *testing.T) {
	for _, name := range []string{
		"nlproxy", "nlproxy:v1.0.0-rc.1_2", "library/nlproxy", "localhost:5000/nlproxy:dev",
		"Registry.example.com/team_a/nl-proxy:1@sha256:" + strings.Repeat("0f", 32),
	} {
		if err := checkImage(name); err != nil {
			t.Error(err)
		}
	}
}
