package watch

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
)

// ranged is a node with a pod CIDR.
func ranged(n *corev1.Node, cidrs ...string) *corev1.Node {
	n.Spec.PodCIDRs = cidrs
	return n
}

// TestReadyWaitsForTheNodeAsKubeProxyDoes feeds nodes at certain times after the
// first list, which has the one of time 0, if any.
func TestReadyWaitsForTheNodeAsKubeProxyDoes(t *testing.T) {
	bare, addressed := node("n1"), node("n1", "192.168.7.1")
	complete := ranged(node("n1", "192.168.7.1"), "10.244.1.0/24")
	unaddressed := ranged(node("n1"), "10.244.1.0/24")
	const second, minute = time.Second, time.Minute
	for name, test := range map[string]struct {
		needPodCIDRs bool
		comes        map[time.Duration]*corev1.Node
		want         string // the error
		after        time.Duration
	}{
		"there":                                   {false, map[time.Duration]*corev1.Node{0: addressed}, "", 0},
		"comes":                                   {false, map[time.Duration]*corev1.Node{29 * second: addressed}, "", 29 * second},
		"never comes":                             {false, nil, "node is not known: there is no node n1 (the host's name)", 30 * second},
		"gets an address":                         {false, map[time.Duration]*corev1.Node{0: bare, 29 * second: addressed}, "", 29 * second},
		"never gets an address":                   {false, map[time.Duration]*corev1.Node{0: bare}, "", 30 * second},
		"there, with a pod CIDR":                  {true, map[time.Duration]*corev1.Node{0: complete}, "", 0},
		"gets a pod CIDR":                         {true, map[time.Duration]*corev1.Node{0: addressed, 4 * minute: complete}, "", 4 * minute},
		"never gets a pod CIDR":                   {true, map[time.Duration]*corev1.Node{0: addressed}, "node is not known: node n1 has no pod CIDR", 5 * minute},
		"gets an address late, then a pod CIDR":   {true, map[time.Duration]*corev1.Node{29 * second: addressed, 5 * minute: complete}, "", 5 * minute},
		"never gets an address, has a pod CIDR":   {true, map[time.Duration]*corev1.Node{0: unaddressed}, "", 30 * second},
		"comes after the time for addresses":      {true, map[time.Duration]*corev1.Node{5 * minute: complete}, "", 5 * minute},
		"never comes, and should have a pod CIDR": {true, nil, "node is not known: there is no node n1 (the host's name)", 5*minute + 30*second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f := nodeSource(Options{NodeNameOrigin: "the host's name", NeedPodCIDRs: test.needPodCIDRs})
				var first []any
				for when, n := range test.comes {
					if when == 0 {
						first = append(first, n)
						continue
					}
					time.AfterFunc(when, func() { _ = f.Add(n) })
				}
				must(t, f.Replace(first, "1"))
				begin := time.Now()
				err := s.Ready(t.Context())
				if took := time.Since(begin); took != test.after {
					t.Errorf("took %v, want %v", took, test.after)
				}
				if got := text(err); got != test.want || err != nil && !errors.Is(err, ErrNoNode) {
					t.Errorf("error is %q, want %q", got, test.want)
				}
			})
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestReadyTellsOfListsThatDoNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		f := newFacts(Options{}, kindService, kindSlice, kindNode)
		f.arrived(kindSlice)
		s := &Source{facts: f, options: Options{Logger: zap.New(core)}}
		time.AfterFunc(80*time.Second, func() { f.arrived(kindService); f.arrived(kindNode) })
		if err := s.listed(t.Context()); err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, e := range logs.All() {
			told = append(told, fmt.Sprint(e.ContextMap()["missing"], e.ContextMap()["for"]))
		}
		want := []string{"[node service] 15s", "[node service] 1m15s"}
		if !slices.Equal(told, want) {
			t.Errorf("told of %q, want %q", told, want)
		}
	})
}

func TestReadyEndsWithItsContextWhileItWaitsForTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := nodeSource(Options{})
		must(t, f.Replace(nil, "1"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
	})
}

// TestANodeKeepsWhatANewOneLacks is of a node that is deleted and made anew: it
// gets its addresses and pod CIDRs a little later.
func TestANodeKeepsWhatANewOneLacks(t *testing.T) {
	s, f := nodeSource(Options{NeedPodCIDRs: true})
	expect := func(when, address, cidr, lacking string) {
		t.Helper()
		got, _ := s.Snapshot()
		want := got.Node
		want.Addresses, want.PodCIDRs = addrs(address), prefixes(cidr)
		if !got.Node.Equal(want) {
			t.Errorf("%s: node is %+v", when, got.Node)
		}
		if got := text(s.NodeErr()); got != lacking {
			t.Errorf("%s: error is %q, want %q", when, got, lacking)
		}
	}
	old := ranged(node("n1", "192.168.7.1"), "10.244.1.0/24")
	must(t, f.Replace([]any{old}, "1"))
	expect("at first", "192.168.7.1", "10.244.1.0/24", "")
	must(t, f.Delete(old))
	expect("deleted", "192.168.7.1", "10.244.1.0/24", "node is not known: there is no node n1")
	must(t, f.Add(node("n1")))
	expect("made anew", "192.168.7.1", "10.244.1.0/24", "node is not known: node n1 has no address and no pod CIDR")
	if got := len(s.Problems()); got != 2 {
		t.Errorf("problems are %v, want one of the addresses and one of the pod CIDRs", texts(s.Problems()))
	}
	must(t, f.Update(node("n1", "192.168.7.9")))
	expect("addressed", "192.168.7.9", "10.244.1.0/24", "node is not known: node n1 has no pod CIDR")
	must(t, f.Update(ranged(node("n1", "192.168.7.9"), "10.244.9.0/24")))
	expect("complete", "192.168.7.9", "10.244.9.0/24", "")
	if got := s.Problems(); len(got) != 0 {
		t.Errorf("problems are %v", got)
	}
}

// TestADirectorysNodeIsAnotherOne shows that nothing of one node, or of the
// host, is taken for that of another one.
func TestADirectorysNodeIsAnotherOne(t *testing.T) {
	f := newFolder(t, Options{})
	f.facts.setLocal(addrs("192.0.2.1"))
	bare := func(name string) string { return "apiVersion: v1\nkind: Node\nmetadata: {name: " + name + "}\n" }
	for _, step := range []struct {
		what, manifest string
		want           []netip.Addr
	}{
		{"the host", web("a", 1), addrs("192.0.2.1")},
		{"a node without an address", bare("n1"), nil},
		{"with one", nodeManifest("n1", "192.168.7.1"), addrs("192.168.7.1")},
		{"without again", bare("n1"), addrs("192.168.7.1")},
		{"another one without", bare("n2"), nil},
	} {
		f.write("a.yaml", step.manifest)
		f.read()
		s, _ := f.facts.snapshot()
		if got := s.Node.Addresses; !slices.Equal(got, step.want) {
			t.Errorf("%s: addresses are %v, want %v; problems: %v", step.what, got, step.want, f.report.all())
		}
	}
}
