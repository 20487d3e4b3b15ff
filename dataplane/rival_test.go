package dataplane_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/phrase"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"golang.org/x/sys/unix"
)

// foreign is a chain of somebody else's.
func foreign(name string) rules.Place {
	return rules.Place{Chain: rules.ChainID{Table: rules.Table{Family: model.IPv4, Name: "nat"}, Name: name}, Index: -1}
}

// use has a foreign chain jump to the first chain in nat whose name begins with
// prefix, which it returns.
func (r *rig) use(prefix string) rules.ChainID {
	r.t.Helper()
	chains, err := r.kernel.List(iptables.Tables())
	if err != nil {
		r.t.Fatal(err)
	}
	i := slices.IndexFunc(chains, func(c rules.ListedChain) bool { return strings.HasPrefix(c.ID.Name, prefix) })
	if i < 0 {
		r.t.Fatalf("there is no chain %s", prefix)
	}
	exprs, err := rules.Encode(model.IPv4, phrase.Jump(chains[i].ID.Name))
	if err != nil {
		r.t.Fatal(err)
	}
	r.rival(rules.Op{Verb: rules.AddChain, Place: foreign("FOREIGN")},
		rules.Op{Verb: rules.Append, Place: foreign("FOREIGN"), Exprs: exprs})
	return chains[i].ID
}

// rival commits operations of somebody else.
func (r *rig) rival(ops ...rules.Op) {
	r.t.Helper()
	if _, err := r.kernel.Conn.Apply(ops); err != nil {
		r.t.Fatal(err)
	}
}

func TestServiceOwesNothingToWhoeverChangesRulesAllTheTime(t *testing.T) {
	r := newRig(t, dataplane.Options{})
	s := everything(service(1, 1))
	times := 0
	r.kernel.fail = func(ops []rules.Op) error {
		times++
		r.rival(rules.Op{Verb: rules.AddTable, Place: foreign("")},
			rules.Op{Verb: rules.AddChain, Place: foreign(fmt.Sprint("RIVAL-", times))})
		i := slices.IndexFunc(ops, func(op rules.Op) bool { return op.Place.Owner != rules.Frame })
		if i < 0 {
			return nil
		}
		return &kernel.Refused{Objects: []kernel.Refusal{{Place: ops[i].Place, Verb: ops[i].Verb, Errno: unix.ENOENT}}}
	}
	if err := r.Set(t.Context(), s); err == nil || len(r.last.Aside) > 0 {
		t.Errorf("error %v, set aside %v", err, r.last.Aside)
	}
	r.kernel.fail = nil
	r.set(changed(s.Services))
	r.wrote(1)
}

func TestTwoWhoStartAtOnceLeaveNothingTwice(t *testing.T) {
	r, fresh := newRig(t, dataplane.Options{}), newRig(t, dataplane.Options{})
	s := everything(service(1, 2), service(2, 0))
	r.kernel.fail = func(ops []rules.Op) error {
		r.kernel.fail = nil
		r.rival(ops...)
		return nil
	}
	r.set(s)
	fresh.set(s)
	want, got := fresh.text(), r.text()
	for _, of := range []map[string][]string{want, got} { // what others own stays as it is
		maps.DeleteFunc(of, func(chain string, _ []string) bool { return !strings.Contains(chain, "KUBE-") })
	}
	sameChains(t, want, got)
}

func TestChainInUseByOthersIsUsedAgain(t *testing.T) {
	r := newRig(t, dataplane.Options{})
	r.set(everything(service(1, 2), service(2, 1)))
	used := r.use("KUBE-SVC-")
	for round := range 2 {
		r.set(everything())
		if rules, there := r.text()[used.String()]; !there || len(rules) > 0 {
			t.Errorf("round %d: the chain is there: %v, with %d rules", round, there, len(rules))
		}
		r.set(everything(service(1, 2), service(2, 1)))
		r.kernel.transactions = 0
		r.set(everything(service(1, 2), service(2, 1)))
		r.wrote(0)
	}
	fresh := newRig(t, dataplane.Options{})
	fresh.set(everything(service(1, 2), service(2, 1)))
	if want, got := fresh.text()[used.String()], r.text()[used.String()]; !slices.Equal(want, got) {
		t.Errorf("%d rules instead of %d", len(got), len(want))
	}
}

func TestChainInUseDoesNotHideWhoIsRefused(t *testing.T) {
	r := newRig(t, dataplane.Options{})
	s := everything(service(1, 1))
	r.set(s)
	r.use("KUBE-SVC-")
	r.kernel.fail = func(ops []rules.Op) error {
		var no kernel.Refused
		for _, op := range ops {
			switch {
			case op.Verb == rules.DeleteChain:
				no.Objects = append(no.Objects, kernel.Refusal{Place: op.Place, Verb: op.Verb, Errno: unix.EBUSY})
			case op.Place.Owner == "default/svc-2":
				no.Objects = append(no.Objects, kernel.Refusal{Place: op.Place, Verb: op.Verb, Errno: unix.EINVAL})
			}
		}
		if !slices.ContainsFunc(no.Objects, func(o kernel.Refusal) bool { return o.Errno == unix.EINVAL }) {
			return nil
		}
		return &no
	}
	s = changed(s.Services, service(2, 1), service(3, 1))
	gone := service(1, 1).Name
	s.Services = s.Services.With(map[model.Name]*model.Service{gone: nil})
	s.Changed[gone] = struct{}{}
	r.set(s)
	if len(r.last.Aside) != 1 || r.last.Aside[0].Service != service(2, 1).Name {
		t.Errorf("set aside: %v", r.last.Aside)
	}
}
