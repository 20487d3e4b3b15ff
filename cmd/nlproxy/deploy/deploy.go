package deploy

import (
	_ "embed"
	"path"
	"strings"
)

// Unit is a unit of systemd for a node that no kubelet deploys to.
//
//go:embed nlproxy.service
var Unit string

// Dashboard is a dashboard of Grafana, as JSON.
//
//go:embed dashboard.json
var Dashboard string

// The templates of fill.
var (
	//go:embed manifests/about-install.txt
	aboutInstall string
	//go:embed manifests/about-takeover.txt
	aboutTakeover string
	//go:embed manifests/serviceaccount.yaml
	serviceAccount string
	//go:embed manifests/clusterrole.yaml
	clusterRole string
	//go:embed manifests/clusterrolebinding.yaml
	clusterRoleBinding string
	//go:embed manifests/configmap.yaml
	configMap string
	//go:embed manifests/daemonset.yaml
	daemonSet string
	//go:embed manifests/kustomization.yaml
	kustomization string
	//go:embed manifests/kube-proxy-patch.yaml
	kubeProxyPatch string
)

// What a pod requests is what it was measured to use, with a margin. Memory: 27
// MB are resident with 10 services when the first rules are written, and 23 MB
// later, when what only the start needed has been given back. CPU: 25 ms for a
// change, of which there is at most one in a second; nearly all is the kernel's
// walk through the table of connection tracking.
//
// There are no limits: a first list of a large cluster takes several times as
// much of both for seconds, and a pod that is throttled or killed then is a node
// that is not served.
const (
	requestCPU    = "50m"
	requestMemory = "32Mi"
)

// A File is a document with its name in a kustomize base.
type File struct{ Name, Content string }

// Base returns the files of a kustomize base in dir, which is for comments
// alone.
func Base(o Options, dir string) ([]File, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	about := o.about("kubectl apply -k "+dir, "kubectl delete -k "+dir)
	base := about + "#\n" + o.fill(kustomization, "{{dir}}", path.Base(dir))
	files := append(o.objects(), File{"kustomization.yaml", base})
	if o.Takeover {
		files = append(files, File{"kube-proxy-patch.yaml", kubeProxyPatch})
	}
	return files, nil
}

// Stream returns the same objects as one text for kubectl apply -f.
func Stream(o Options) (string, error) {
	if err := o.validate(); err != nil {
		return "", err
	}
	text := o.about("kubectl apply -f nlproxy.yaml", "kubectl delete -f nlproxy.yaml")
	for _, f := range o.objects() {
		text += "---\n" + f.Content
	}
	return text, nil
}

// objects are the objects in the order in which they need each other.
func (o Options) objects() []File {
	files := []File{
		{"serviceaccount.yaml", o.fill(serviceAccount)},
		{"clusterrole.yaml", o.fill(clusterRole)},
		{"clusterrolebinding.yaml", o.fill(clusterRoleBinding)},
	}
	if !o.Takeover { // which uses kube-proxy's
		files = append(files, File{"configmap.yaml", o.fill(configMap)})
	}
	return append(files, File{"daemonset.yaml", o.fill(daemonSet)})
}

// about says in comments what to do with the objects.
func (o Options) about(apply, undo string) string {
	about := aboutInstall
	if o.Takeover {
		about = aboutTakeover
	}
	return o.fill(about, "{{apply}}", apply, "{{delete}}", undo)
}

// fill fills in a template. More are pairs of a placeholder and its value.
func (o Options) fill(template string, more ...string) string {
	more = append(more,
		"{{image}}", o.Image, "{{server}}", o.Server, "{{cluster-cidr}}", o.ClusterCIDR,
		"{{cpu}}", requestCPU, "{{memory}}", requestMemory)
	holds := map[string]bool{"server": o.Server != "", "init": o.Init, "takeover": o.Takeover}
	return strings.NewReplacer(more...).Replace(kept(template, holds))
}

// kept leaves out what is between the lines "#if NAME", or "#if no-NAME", and
// "#end" where that does not hold. Such lines may be within each other.
//
// It stands in for text/template, whose calls of methods by name keep the linker
// from leaving any method out: 5 MB of a stripped program of 22 MB.
func kept(template string, holds map[string]bool) string {
	var text strings.Builder
	keep := []bool{true} // of each condition, and all around it
	for line := range strings.Lines(template) {
		condition, begins := strings.CutPrefix(strings.TrimSpace(line), "#if ")
		switch {
		case begins:
			name, negated := strings.CutPrefix(condition, "no-")
			keep = append(keep, keep[len(keep)-1] && holds[name] != negated)
		case strings.TrimSpace(line) == "#end":
			keep = keep[:len(keep)-1]
		case keep[len(keep)-1]:
			text.WriteString(line)
		}
	}
	return text.String()
}
