package watch

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dying is what makes a Node one that goes.
var dying = map[string]func(*corev1.Node){
	"being deleted": func(n *corev1.Node) { n.DeletionTimestamp = new(metav1.Now()) },
	"about to be taken away by the cluster autoscaler": func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Value: "1700000000", Effect: corev1.TaintEffectNoSchedule}}
	},
}

// harmless is what a Node may have and still be eligible.
var harmless = map[string]func(*corev1.Node){
	"nothing special": func(*corev1.Node) {},
	"cordoned": func(n *corev1.Node) {
		n.Spec.Unschedulable = true
		n.Spec.Taints = []corev1.Taint{{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule}}
	},
	"perhaps scaled down": func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "DeletionCandidateOfClusterAutoscaler", Effect: corev1.TaintEffectPreferNoSchedule}}
	},
	"not ready": func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	},
	"without an address": func(n *corev1.Node) { n.Status.Addresses = nil },
}

func TestANodeIsEligibleUnlessItGoes(t *testing.T) {
	for want, cases := range map[bool]map[string]func(*corev1.Node){true: harmless, false: dying} {
		for name, change := range cases {
			t.Run(name, func(t *testing.T) {
				s, f := nodeSource(Options{})
				n := node("n1", "192.168.7.1")
				change(n)
				must(t, f.Add(n))
				if got := s.Eligible(); got != want {
					t.Errorf("eligible is %v, want %v", got, want)
				}
			})
		}
	}
}

// nodeSource returns a source whose node is n1, and what that is fed to.
func nodeSource(o Options) (*Source, *feed[*corev1.Node, seenNode]) {
	o.NodeName = "n1"
	o = o.withDefaults()
	s := &Source{facts: newFacts(o, kindNode), report: newReporter(o), options: o}
	return s, ownNodeFeed(o, s.facts, s.report)
}

func TestEligibilityFollowsTheNode(t *testing.T) {
	s, f := nodeSource(Options{})
	expect := func(when string, want bool) {
		t.Helper()
		if got := s.Eligible(); got != want {
			t.Errorf("%s: eligible is %v, want %v", when, got, want)
		}
	}
	good, bad := node("n1", "192.168.7.1"), node("n1", "192.168.7.1")
	dying["about to be taken away by the cluster autoscaler"](bad)

	expect("nothing has arrived", false)
	must(t, f.Replace(nil, "1"))
	expect("it does not exist", false)
	must(t, f.Add(node("n2", "192.168.7.2")))
	expect("another node", false)
	must(t, f.Add(good))
	expect("it exists", true)
	must(t, f.Update(bad))
	expect("marked", false)
	must(t, f.Update(good))
	expect("not marked any more", true)
	must(t, f.Delete(good))
	expect("deleted", false)
	must(t, f.Replace([]any{good}, "2"))
	expect("made anew", true)
	must(t, f.Replace(nil, "3"))
	expect("not in a new list", false)
}

func TestADirectoryIsEligibleUnlessItsNodeGoes(t *testing.T) {
	f := newFolder(t, Options{})
	for _, step := range []struct {
		what, manifest string
		want           bool
	}{
		{"no node", web("a", 1), true},
		{"a node", nodeManifest("n1", "192.168.7.1"), true},
		{"marked", strings.Replace(nodeManifest("n1", "192.168.7.1"), "spec: {",
			"spec: {taints: [{key: ToBeDeletedByClusterAutoscaler, effect: NoSchedule}], ", 1), false},
		{"no node any more", web("a", 1), true},
	} {
		f.write("a.yaml", step.manifest)
		f.read()
		if got := f.facts.eligible.Load(); got != step.want {
			t.Errorf("%s: eligible is %v, want %v; problems: %v", step.what, got, step.want, f.report.all())
		}
	}
}
