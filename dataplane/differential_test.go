package dataplane_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"golang.org/x/sys/unix"
)

var histories = flag.Int("histories", 5, "how many random histories are tried")

// chance makes objects out of few values, so that they meet: services want the
// addresses and node ports of each other, and share endpoints.
type chance struct{ *rand.Rand }

func (c chance) likely(percent int) bool { return c.IntN(100) < percent }

func pick[T any](c chance, of ...T) T { return of[c.IntN(len(of))] }

func (c chance) addr(of string) netip.Addr {
	return netip.MustParseAddr(fmt.Sprintf(of, 1+c.IntN(5)))
}

func (c chance) service(name string) *model.Service {
	svc := &model.Service{
		Name:          model.Name{Namespace: "default", Name: name},
		ClusterIPs:    pick(c, c.addrs("10.96.0.%d"), c.addrs("fd00:96::%d"), c.addrs("10.96.0.%d", "fd00:96::%d")),
		InternalLocal: c.likely(20),
		ExternalLocal: c.likely(30),
		Affinity:      pick(c, 0, 0, time.Minute),
		Endpoints:     map[model.PortKey][]model.Endpoint{},
	}
	if c.likely(40) {
		svc.ExternalIPs = c.addrs("192.0.2.%d", "10.96.0.%d")
	}
	if c.likely(40) {
		svc.LoadBalancerIPs = c.addrs("198.51.100.%d", "192.0.2.%d", "2001:db8::%d")
	}
	if c.likely(30) {
		svc.SourceRanges = []netip.Prefix{netip.MustParsePrefix("172.16.0.0/12")}
	}
	if c.likely(20) {
		svc.HealthCheckNodePort = uint16(30100 + c.IntN(3))
	}
	keys := []model.PortKey{{Port: "http", Protocol: model.TCP}, {Port: "http", Protocol: model.UDP}, {Port: "dns", Protocol: model.UDP}}
	c.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for i, key := range keys[:1+c.IntN(len(keys))] {
		p := model.Port{PortKey: key, Number: uint16(80 + i)}
		if c.likely(40) {
			p.NodePort = uint16(30000 + c.IntN(6))
		}
		svc.Ports = append(svc.Ports, p)
		svc.Endpoints[key] = c.endpoints()
	}
	return svc
}

func (c chance) addrs(of ...string) []netip.Addr {
	var all []netip.Addr
	for _, o := range of {
		all = append(all, c.addr(o))
	}
	return all
}

func (c chance) endpoints() []model.Endpoint {
	byText := map[string]model.Endpoint{}
	for range c.IntN(5) {
		ready := c.likely(80)
		e := model.Endpoint{
			Addr:  netip.AddrPortFrom(c.addr(pick(c, "10.244.0.%d", "fd00:244::%d")), 8080),
			Ready: ready, Serving: ready || c.likely(50), Terminating: !ready,
			Node: pick(c, "node1", "node2"),
		}
		if c.likely(30) {
			e.Zones = []string{pick(c, "a", "b")}
		}
		byText[e.Addr.String()] = e
	}
	var all []model.Endpoint
	for _, e := range byText {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b model.Endpoint) int { return strings.Compare(a.Addr.String(), b.Addr.String()) })
	return all
}

func (c chance) node() model.Node {
	n := model.Node{Name: pick(c, "node1", "node2"), Zone: pick(c, "a", "b")}
	n.Addresses = []netip.Addr{c.addr("172.16.0.%d"), c.addr("fd00:16::%d")}
	n.PodCIDRs = []netip.Prefix{netip.MustParsePrefix(pick(c, "10.244.0.0/24", "10.244.1.0/24"))}
	n.Local = append(n.Addresses, netip.MustParseAddr("127.0.0.1"))
	return n
}

// next changes some of what there is in s.
func (c chance) next(s model.Snapshot, names []string) model.Snapshot {
	changes := map[model.Name]*model.Service{}
	for range 1 + c.IntN(3) {
		svc := c.service(pick(c, names...))
		changes[svc.Name] = svc
		if c.likely(30) {
			changes[svc.Name] = nil
		}
	}
	next := model.Snapshot{Node: s.Node, Services: s.Services.With(changes), Changed: map[model.Name]struct{}{}}
	for name := range changes {
		next.Changed[name] = struct{}{}
	}
	if c.likely(15) {
		next.Node = c.node()
	}
	return next
}

// trouble is what the kernel may answer instead of doing what it is asked to.
func (c chance) trouble(r *rig) func([]rules.Op) error {
	wait := c.IntN(3)
	return func(ops []rules.Op) error {
		if wait--; wait != -1 {
			return nil
		}
		op := ops[c.IntN(len(ops))]
		switch c.IntN(5) {
		case 0:
			return errors.New("no memory")
		case 1:
			return &kernel.Uncertain{Err: unix.ENOBUFS}
		case 2:
			if _, err := r.kernel.Conn.Apply(ops); err != nil {
				return err
			}
			return &kernel.Uncertain{Err: unix.ENOBUFS}
		case 3:
			return &kernel.Refused{Objects: []kernel.Refusal{{Place: op.Place, Verb: op.Verb, Errno: unix.ENOENT}}}
		}
		for _, o := range ops {
			if o.Place.Owner != rules.Frame {
				return &kernel.Refused{Objects: []kernel.Refusal{{Place: o.Place, Verb: o.Verb, Errno: unix.EINVAL}}}
			}
		}
		return nil
	}
}

// Whatever happened before, the kernel holds what it would if it had been
// programmed from nothing.
func TestRulesetDoesNotDependOnHistory(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	opts := plan.Options{
		MasqueradeBit: 14,
		Detect:        plan.Detect{Mode: plan.DetectNodeCIDR},
		NodePorts:     plan.NodePorts{Primary: true, Prefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Localhost: true},
	}
	for seed := range uint64(*histories) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := chance{rand.New(rand.NewPCG(seed, 1))}
			o := dataplane.Options{RetryAside: 1}
			if c.likely(50) {
				o.TransactionBytes = 4 << 10
			}
			r := newRig(t, o)
			if c.likely(30) {
				r.kernel.fit = 1 + c.IntN(20)
			}
			r.opts.Plan = opts
			r.restart()
			var s model.Snapshot
			s.Node = c.node()
			s = c.next(s, names)
			s.Changed = nil
			for step := range 25 {
				if c.likely(40) {
					r.kernel.fail = c.trouble(r)
				}
				_ = r.Set(t.Context(), s)
				r.kernel.fail = nil
				if step%2 == 0 { // else what is owed meets the next change
					now := model.Snapshot{Node: s.Node, Services: s.Services, Changed: map[model.Name]struct{}{}}
					r.set(now)
					if len(r.last.Aside) > 0 {
						t.Errorf("step %d: aside: %v", step, r.last.Aside)
					}
					fresh := newRig(t, dataplane.Options{})
					fresh.opts.Plan = opts
					fresh.restart()
					now.Changed = nil
					fresh.set(now)
					if diff := cmp.Diff(fresh.saved(), r.saved()); diff != "" {
						t.Fatalf("step %d: %s", step, diff)
					}
				}
				s = c.next(s, names)
				if c.likely(10) {
					r.restart()
					s.Changed = nil
				}
			}
		})
	}
}

// meddle is what somebody else may do to one of the chains.
func (c chance) meddle(chains []rules.ListedChain) rules.Op {
	of := pick(c, chains...)
	op := rules.Op{Verb: pick(c, rules.Flush, rules.DeleteChain, rules.Delete, rules.Prepend), Place: rules.Place{Chain: of.ID, Index: -1}}
	if len(of.Rules) > 0 {
		rule := pick(c, of.Rules...)
		op.Handle, op.Exprs = rule.Handle, rule.Exprs
	}
	return op
}

// Whatever others do to chains of ours, it is undone.
func TestRulesetDoesNotDependOnRivals(t *testing.T) {
	for seed := range uint64(*histories) {
		c := chance{rand.New(rand.NewPCG(seed, 2))}
		r := newRig(t, dataplane.Options{Recheck: 1})
		s := c.next(model.Snapshot{Node: c.node()}, []string{"a", "b", "c"})
		s.Changed = nil
		for step := range 10 {
			r.set(s)
			chains, err := r.kernel.List(iptables.Tables())
			if err != nil {
				t.Fatal(err)
			}
			chains = slices.DeleteFunc(chains, func(chain rules.ListedChain) bool {
				kind, _ := iptables.Classify(chain.ID)
				return kind == rules.Lent
			})
			for range 1 + c.IntN(4) {
				_, _ = r.kernel.Conn.Apply([]rules.Op{c.meddle(chains)}) // not all of it can be done
			}
			now := model.Snapshot{Node: s.Node, Services: s.Services, Changed: map[model.Name]struct{}{}}
			r.set(now)
			fresh := newRig(t, dataplane.Options{})
			now.Changed = nil
			fresh.set(now)
			if diff := cmp.Diff(fresh.saved(), r.saved()); diff != "" {
				t.Fatalf("seed %d, step %d: %s", seed, step, diff)
			}
			s = c.next(s, []string{"a", "b", "c"})
		}
	}
}

// saved is the kernel's ruleset as text: the lines of chains that several fill
// are sorted.
func (r *rig) saved() string {
	r.t.Helper()
	chains, err := r.kernel.List(iptables.Tables())
	if err != nil {
		r.t.Fatal(err)
	}
	var all []string
	for _, c := range chains {
		var b strings.Builder
		if err := iptables.Save(&b, []rules.ListedChain{c}, iptables.SaveOptions{}); err != nil {
			r.t.Fatal(err)
		}
		lines := strings.Split(b.String(), "\n")
		if kind, _ := iptables.Classify(c.ID); kind != rules.Private {
			slices.Sort(lines)
		}
		all = append(all, c.ID.String()+"\n"+strings.Join(lines, "\n"))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}
