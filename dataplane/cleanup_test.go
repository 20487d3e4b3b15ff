package dataplane_test

import (
	"testing"

	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
)

func TestChainsAreKubeProxysWhileItsCanaryIsThere(t *testing.T) {
	for _, family := range model.Families {
		t.Run(family.String(), func(t *testing.T) {
			r := newRig(t, dataplane.Options{})
			check := func(when string, want bool) {
				t.Helper()
				if got, err := dataplane.TakenOver(r.kernel); got != want || err != nil {
					t.Errorf("%s: %t, %v; want %t", when, got, err, want)
				}
			}
			check("in an empty kernel", false)
			r.set(everything(service(1, 1)))
			check("after a synchronisation", false)
			canary := rules.Place{Chain: iptables.Canary(family), Index: -1}
			r.rival(rules.Op{Verb: rules.AddChain, Place: canary})
			check("with a canary", true)
			r.restart()
			r.set(everything(service(1, 1)))
			check("after another start", false)
		})
	}
}
