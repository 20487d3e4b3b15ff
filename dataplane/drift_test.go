package dataplane_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"
)

// take empties the chains in nat by which connections get to their endpoints,
// and deletes those whose names begin with prefix, as somebody else would.
func (r *rig) take(prefix string) {
	r.t.Helper()
	chains, err := r.kernel.List(iptables.Tables())
	if err != nil {
		r.t.Fatal(err)
	}
	var flushes, deletions []rules.Op
	for _, c := range chains {
		if c.ID.Table.Name != "nat" || c.Hook != nil || isSentinel(c.ID.Name) {
			continue
		}
		place := rules.Place{Chain: c.ID, Index: -1}
		flushes = append(flushes, rules.Op{Verb: rules.Flush, Place: place})
		if strings.HasPrefix(c.ID.Name, prefix) {
			deletions = append(deletions, rules.Op{Verb: rules.DeleteChain, Place: place})
		}
	}
	if len(deletions) == 0 {
		r.t.Fatalf("there is no chain %s", prefix)
	}
	if _, err := r.kernel.Conn.Apply(slices.Concat(flushes, deletions)); err != nil {
		r.t.Fatal(err)
	}
}

// empty takes the rules of the chains in nat whose names begin with prefix.
func (r *rig) empty(prefix string) {
	r.t.Helper()
	chains, err := r.kernel.List(iptables.Tables())
	if err != nil {
		r.t.Fatal(err)
	}
	var flushes []rules.Op
	for _, c := range chains {
		if c.ID.Table.Name == "nat" && strings.HasPrefix(c.ID.Name, prefix) {
			flushes = append(flushes, rules.Op{Verb: rules.Flush, Place: rules.Place{Chain: c.ID, Index: -1}})
		}
	}
	if _, err := r.kernel.Conn.Apply(flushes); err != nil {
		r.t.Fatal(err)
	}
}

// A chain by which connections come to many services is looked at whenever
// somebody else has changed the ruleset.
func TestEmptiedSharedChainIsNoticedAtOnce(t *testing.T) {
	for _, name := range []string{"KUBE-SERVICES", "KUBE-NODEPORTS"} {
		r := newRig(t, dataplane.Options{})
		s := everything(service(1, 2), service(2, 2))
		r.set(s)
		before := r.text()
		r.empty(name)
		r.set(changed(s.Services))
		sameChains(t, before, r.text())
	}
}

// What is gone without anybody's telling is found out when something that it
// has to do with changes, whatever that needs of it. All is repaired then, and
// no service is held responsible.
func TestChainsThatOthersTookAreMadeAgain(t *testing.T) {
	more, none, new := service(1, 3), service(1, 0), service(3, 2)
	for _, c := range []struct {
		taken  string
		change *model.Service
	}{
		{"KUBE-SVC-", more}, {"KUBE-SVC-", none},
		{"KUBE-SEP-", more}, {"KUBE-SEP-", none},
		{"KUBE-EXT-", more}, {"KUBE-EXT-", none},
		{"KUBE-NODEPORTS", more}, {"KUBE-NODEPORTS", none}, {"KUBE-NODEPORTS", new},
	} {
		t.Run(fmt.Sprintf("%s and %s with %d endpoints", c.taken, c.change.Name, len(c.change.Endpoints[http])), func(t *testing.T) {
			r, fresh := newRig(t, dataplane.Options{}), newRig(t, dataplane.Options{})
			before := everything(service(1, 2), service(2, 2))
			r.set(before)
			r.take(c.taken)
			after := changed(before.Services, c.change)
			r.set(after)
			if len(r.last.Aside) > 0 || !r.last.Full {
				t.Errorf("full %v, set aside %v", r.last.Full, r.last.Aside)
			}
			after.Changed = nil
			fresh.set(after)
			sameChains(t, fresh.text(), r.text())
		})
	}
}

// What is gone is found out even if nothing has to do with it, once it is time
// to compare everything because somebody else was there; and not otherwise.
func TestEverythingIsComparedAfterOthersChangedTheRuleset(t *testing.T) {
	for want, recheck := range map[bool]time.Duration{true: 1, false: 0} {
		r := newRig(t, dataplane.Options{Recheck: recheck})
		s := everything(service(1, 2), service(2, 2))
		r.set(s)
		r.set(changed(s.Services))
		if r.last.Full {
			t.Error("everything was compared though nobody else was there")
		}
		before := r.text()
		r.empty("KUBE-SEP-")
		r.set(changed(s.Services))
		if r.last.Full != want {
			t.Errorf("with %v to wait, everything was compared: %v", recheck, r.last.Full)
		}
		if want {
			sameChains(t, before, r.text())
		}
	}
}

func TestRefusedFamilyIsTriedAgain(t *testing.T) {
	r, fresh := newRig(t, dataplane.Options{Recheck: 1}), newRig(t, dataplane.Options{})
	s := everything(service(1, 1))
	r.kernel.fail = func(ops []rules.Op) error {
		r.kernel.fail = nil
		i := slices.IndexFunc(ops, func(op rules.Op) bool { return op.Place.Chain.Table.Family == model.IPv6 })
		return &kernel.Refused{Objects: []kernel.Refusal{{Place: ops[i].Place, Verb: ops[i].Verb, Errno: unix.ENOMEM}}}
	}
	r.set(s)
	if n := r.last.Rules[rules.Table{Family: model.IPv6, Name: "nat"}]; n != 0 {
		t.Errorf("%d rules of the family that was refused", n)
	}
	r.set(changed(s.Services))
	fresh.set(s)
	sameChains(t, fresh.text(), r.text())
}

func TestBaseChainThatIsNoneIsNamed(t *testing.T) {
	log, seen := observer.New(zap.WarnLevel)
	r := newRig(t, dataplane.Options{Logger: zap.New(log)})
	r.rival(rules.Op{Verb: rules.AddTable, Place: foreign("")}, rules.Op{Verb: rules.AddChain, Place: foreign("PREROUTING")})
	r.set(everything(service(1, 1)))
	if seen.Len() != 1 || seen.All()[0].ContextMap()["chain"] != "ip nat PREROUTING" {
		t.Errorf("warned of %v", seen.All())
	}
}

// isSentinel reports whether a chain is looked at when nothing changes.
func isSentinel(name string) bool { return name == "KUBE-MARK-MASQ" || name == "KUBE-POSTROUTING" }
