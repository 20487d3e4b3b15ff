package dataplane_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { labtest.Main(m) }

var http = model.PortKey{Port: "http", Protocol: model.TCP}

// service number i has so many endpoints and a node port.
func service(i, endpoints int) *model.Service {
	svc := &model.Service{
		Name:       model.Name{Namespace: "default", Name: fmt.Sprintf("svc-%d", i)},
		Ports:      []model.Port{{PortKey: http, Number: 80, NodePort: uint16(30000 + i)}},
		ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)})},
		Endpoints:  map[model.PortKey][]model.Endpoint{},
	}
	for e := range endpoints {
		a := netip.AddrFrom4([4]byte{10, 244, byte(i), byte(e + 1)})
		svc.Endpoints[http] = append(svc.Endpoints[http],
			model.Endpoint{Addr: netip.AddrPortFrom(a, 8080), Ready: true, Serving: true})
	}
	return svc
}

func everything(svcs ...*model.Service) model.Snapshot {
	s := changed(model.Services{}, svcs...)
	s.Changed = nil
	return s
}

// changed is a snapshot in which svcs are new or other than in old.
func changed(old model.Services, svcs ...*model.Service) model.Snapshot {
	changes := map[model.Name]*model.Service{}
	names := map[model.Name]struct{}{}
	for _, svc := range svcs {
		changes[svc.Name] = svc
		names[svc.Name] = struct{}{}
	}
	return model.Snapshot{Services: old.With(changes), Changed: names}
}

// seam stands between a dataplane and the kernel.
type seam struct {
	*kernel.Conn
	// fail, if set, is asked before each transaction.
	fail func(ops []rules.Op) error
	// fit, if not 0, is how many operations fit into one.
	fit          int
	transactions int
}

func (s *seam) Fit(ops []rules.Op) int {
	if s.fit > 0 {
		return min(s.fit, len(ops))
	}
	return s.Conn.Fit(ops)
}

func (s *seam) Apply(ops []rules.Op) ([]uint64, error) {
	if s.fail != nil {
		if err := s.fail(ops); err != nil {
			return nil, err
		}
	}
	s.transactions++
	return s.Conn.Apply(ops)
}

// rig is a dataplane in a network namespace of its own.
type rig struct {
	*dataplane.Dataplane
	t      *testing.T
	kernel *seam
	opts   dataplane.Options
	last   dataplane.Report
}

func newRig(t *testing.T, o dataplane.Options) *rig {
	t.Helper()
	r := &rig{t: t, kernel: &seam{}}
	err := labtest.Namespace(t).Do(func() (err error) {
		r.kernel.Conn, err = kernel.Dial(kernel.Options{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.kernel.Close() })
	o.Reader, o.Writer = r.kernel, r.kernel
	o.Plan = plan.Options{MasqueradeBit: 14}
	o.Observer = func(report dataplane.Report) { r.last = report }
	r.opts = o
	r.restart()
	return r
}

// restart forgets all that is remembered, as a new process does.
func (r *rig) restart() {
	r.t.Helper()
	d, err := dataplane.New(r.opts)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Dataplane = d
}

func (r *rig) set(s model.Snapshot) {
	r.t.Helper()
	if err := r.Set(r.t.Context(), s); err != nil {
		r.t.Fatal(err)
	}
}

// wrote checks how many transactions there were since it was asked last.
func (r *rig) wrote(want int) {
	r.t.Helper()
	if r.kernel.transactions != want {
		r.t.Errorf("%d transactions, want %d", r.kernel.transactions, want)
	}
	r.kernel.transactions = 0
}

// text is the kernel's ruleset without handles and order of chains.
func (r *rig) text() map[string][]string {
	r.t.Helper()
	chains, err := r.kernel.List(iptables.Tables())
	if err != nil {
		r.t.Fatal(err)
	}
	all := map[string][]string{}
	for _, c := range chains {
		lines := []string{}
		for _, rule := range c.Rules {
			canonical, err := rules.Canonical(nil, rule.Exprs)
			if err != nil {
				r.t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%x", canonical))
		}
		all[c.ID.String()] = lines
	}
	return all
}

func TestNothingChangedWritesNothing(t *testing.T) {
	r := newRig(t, dataplane.Options{})
	s := everything(service(1, 3), service(2, 0))
	r.set(s)
	r.wrote(1)
	r.set(s)
	r.wrote(0)
	r.set(changed(s.Services))
	r.wrote(0)
	r.restart()
	r.set(s)
	r.wrote(0)
	if !r.last.Full || r.last.Operations != 0 {
		t.Errorf("a start with nothing changed: %+v", r.last)
	}
}

func TestChangeIsOneTransaction(t *testing.T) {
	r := newRig(t, dataplane.Options{})
	s := everything(service(1, 3), service(2, 2))
	r.set(s)
	r.wrote(1)
	r.set(changed(s.Services, service(2, 3)))
	r.wrote(1)
	if r.last.Full || r.last.Planned != 1 {
		t.Errorf("one changed service of two: %+v", r.last)
	}
}

func TestPiecesMakeTheSameRuleset(t *testing.T) {
	var svcs []*model.Service
	for i := range 40 {
		svcs = append(svcs, service(i, i%5))
	}
	whole, pieces := newRig(t, dataplane.Options{}), newRig(t, dataplane.Options{TransactionBytes: 8 << 10})
	whole.set(everything(svcs...))
	pieces.set(everything(svcs...))
	whole.wrote(1)
	if pieces.kernel.transactions < 5 {
		t.Errorf("only %d pieces", pieces.kernel.transactions)
	}
	sameChains(t, whole.text(), pieces.text())
	pieces.kernel.transactions = 0
	pieces.restart()
	pieces.set(everything(svcs...))
	pieces.wrote(0)
}

// sameChains compares rulesets; blocks of a shared chain may be in any order.
func sameChains(t *testing.T, a, b map[string][]string) {
	t.Helper()
	count := func(m map[string][]string) map[string]map[string]int {
		n := map[string]map[string]int{}
		for chain, lines := range m {
			n[chain] = map[string]int{}
			for _, l := range lines {
				n[chain][l]++
			}
		}
		return n
	}
	if diff := cmp.Diff(count(a), count(b)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatFailedIsOwed(t *testing.T) {
	for name, fault := range map[string]error{
		"nothing happened": errors.New("no memory"),
		"uncertain":        &kernel.Uncertain{Err: unix.ENOBUFS},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, dataplane.Options{})
			s := everything(service(1, 3))
			r.set(s)
			r.kernel.fail = func([]rules.Op) error { return fault }
			next := changed(s.Services, service(2, 2))
			if err := r.Set(t.Context(), next); !errors.Is(err, fault) {
				t.Errorf("got %v, want %v", err, fault)
			}
			r.kernel.fail = nil
			r.set(changed(next.Services))
			want := newRig(t, dataplane.Options{})
			want.set(everything(service(1, 3), service(2, 2)))
			sameChains(t, want.text(), r.text())
		})
	}
}

// What a change of the node means for every service is not forgotten because
// the kernel refuses one of them.
func TestRefusalLosesNoOtherChange(t *testing.T) {
	local := service(1, 2)
	local.InternalLocal = true
	local.Endpoints[http][0].Node = "node1"
	before := everything(local)
	after := changed(before.Services, service(2, 1))
	after.Node.Name = "node1"

	r := newRig(t, dataplane.Options{})
	r.set(before)
	r.kernel.fail = func(ops []rules.Op) error {
		r.kernel.fail = nil
		i := slices.IndexFunc(ops, func(op rules.Op) bool { return op.Place.Owner == "default/svc-2" })
		return &kernel.Refused{Objects: []kernel.Refusal{{Place: ops[i].Place, Verb: ops[i].Verb, Errno: unix.EINVAL}}}
	}
	r.set(after)
	if len(r.last.Aside) != 1 {
		t.Errorf("set aside: %v", r.last.Aside)
	}
	want := newRig(t, dataplane.Options{})
	alone := everything(local)
	alone.Node = after.Node
	want.set(alone)
	sameChains(t, want.text(), r.text())
}

func TestCommittedButUncertainIsNotWrittenTwice(t *testing.T) {
	r := newRig(t, dataplane.Options{})
	s := everything(service(1, 3))
	r.kernel.fail = func(ops []rules.Op) error {
		if _, err := r.kernel.Conn.Apply(ops); err != nil {
			return err
		}
		return &kernel.Uncertain{Err: unix.ENOBUFS}
	}
	if err := r.Set(t.Context(), s); err == nil {
		t.Error("an uncertain outcome is no error")
	}
	r.kernel.fail = nil
	r.set(changed(s.Services))
	r.wrote(0)
}

func TestSetEndsWithItsContext(t *testing.T) {
	r := newRig(t, dataplane.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Set(ctx, everything(service(1, 1))); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	r.wrote(0)
	r.set(changed(everything(service(1, 1)).Services))
	r.wrote(1)
}

func TestOptionsThatCannotBeUsed(t *testing.T) {
	r := newRig(t, dataplane.Options{})
	for want, damage := range map[string]func(*dataplane.Options){
		"dataplane: Reader is missing":                              func(o *dataplane.Options) { o.Reader = nil },
		"dataplane: Writer is missing":                              func(o *dataplane.Options) { o.Writer = nil },
		"dataplane: RetryAside -1ns is negative":                    func(o *dataplane.Options) { o.RetryAside = -1 },
		"dataplane: Recheck -1ns is negative":                       func(o *dataplane.Options) { o.Recheck = -1 },
		"dataplane: TransactionBytes -1 is negative":                func(o *dataplane.Options) { o.TransactionBytes = -1 },
		"dataplane: Plan.MasqueradeBit: 32 is not between 0 and 31": func(o *dataplane.Options) { o.Plan.MasqueradeBit = 32 },
	} {
		o := r.opts
		damage(&o)
		if _, err := dataplane.New(o); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// tight is a writer into whose transactions little fits.
type tight struct {
	*seam
	most int
}

func (w tight) Fit(ops []rules.Op) int { return min(w.most, len(ops)) }

func TestCleanupTakesSeveralTransactionsWhereOneDoesNotFit(t *testing.T) {
	r := newRig(t, dataplane.Options{})
	r.set(everything(service(1, 3), service(2, 1)))
	r.kernel.transactions = 0
	n, err := dataplane.Cleanup(r.kernel, tight{r.kernel, 10})
	if err != nil || n <= 10 || r.kernel.transactions < n/10 {
		t.Errorf("%d operations in %d transactions, %v", n, r.kernel.transactions, err)
	}
	if n, err := dataplane.Cleanup(r.kernel, r.kernel); n != 0 || err != nil {
		t.Errorf("a second cleanup: %d operations, %v", n, err)
	}
}
