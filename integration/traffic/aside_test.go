package traffic

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
)

// hundred are valid services of pod-1.
func hundred() []service {
	var list []service
	for i := range 100 {
		list = append(list, service{name: fmt.Sprintf("good-%d", i+1), number: i + 1, endpoints: at("pod-1")})
	}
	return list
}

// An obstructed kernel has, before each transaction, a chain of others in the
// place of one of ours: a base chain, to which nothing may jump.
type obstructed struct {
	*kernel.Conn
	by *rules.Op // nil for nothing
}

func (o *obstructed) Apply(ops []rules.Op) ([]uint64, error) {
	if o.by != nil {
		if _, err := o.Conn.Apply([]rules.Op{*o.by}); err != nil {
			return nil, err
		}
	}
	return o.Conn.Apply(ops)
}

func TestServiceThatTheKernelRefusesCostsNobodyElse(t *testing.T) {
	t.Parallel()
	bad := service{name: "bad", number: 101, endpoints: at("pod-1")}
	p := newProxy(t, settings())
	p.set(t, bad)
	chain := p.spreading(t, model.IPv4, "default/bad:tcp")[0].ID
	p.cleanUp(t)

	writer := &obstructed{p.conn, &rules.Op{Verb: rules.AddChain, Place: rules.Place{Chain: chain, Index: -1},
		Hook: &rules.Hook{Type: "filter", Number: 3, Priority: 500}}}
	p.options.Writer = writer
	p.options.RetryAside = 10 * time.Millisecond
	p.start(t)
	p.run(t, "table ip nat {}", "nft", "-f", "-")
	objects := manifests(append(hundred(), bad)...)
	for range 2 {
		if err := p.sync(t, objects); err != nil {
			t.Fatal(err)
		}
		p.check(t, servedBy("pod-1", hundred()))
		if len(p.report.Aside) != 1 || p.report.Aside[0].Service != (model.Name{Namespace: "default", Name: "bad"}) {
			t.Fatalf("set aside %v, want default/bad", p.report.Aside)
		}
		aside := p.report.Aside[0]
		for _, part := range []string{"default/bad: ip nat KUBE-SERVICES rule 1: ", unix.EOPNOTSUPP.Error()} {
			if !strings.Contains(aside.Err.Error(), part) {
				t.Errorf("%v: does not name %q", aside.Err, part)
			}
		}
		if wait := aside.Retry.Sub(aside.Since); wait < p.options.RetryAside {
			t.Errorf("to be tried again %s after it was refused", wait)
		}
	}

	writer.by = nil
	p.run(t, fmt.Sprintf("add chain ip nat %[1]s; flush chain ip nat %[1]s; delete chain ip nat %[1]s", chain.Name), "nft", "-f", "-")
	for end := time.Now().Add(deadline); len(p.report.Aside) > 0; {
		if err := p.sync(t, objects); err != nil || time.Now().After(end) {
			t.Fatalf("still set aside: %v, %v", p.report.Aside, err)
		}
	}
	p.check(t, servedBy("pod-1", append(hundred(), bad)))
}

// servedBy are rows from a pod to the cluster IPs of services.
func servedBy(place string, services []service) []row {
	var rows []row
	for _, s := range services {
		rows = append(rows, row{from: client, to: s, by: clusterIP, want: kept(place)})
	}
	return rows
}

// cleanUp removes what is ours.
func (p *proxy) cleanUp(t testing.TB) {
	t.Helper()
	if _, err := dataplane.Cleanup(p.conn, p.conn); err != nil {
		t.Fatal(err)
	}
}

// TestOneWinnerOfTwoClaims has two services claim one load-balancer address and
// port, in whatever order they come.
func TestOneWinnerOfTwoClaims(t *testing.T) {
	t.Parallel()
	one := service{name: "one", number: 1, kind: "LoadBalancer", endpoints: at("pod-1")}
	two := service{name: "two", number: 2, kind: "LoadBalancer", endpoints: at("pod-2"),
		ingress: fmt.Sprintf("{ip: %q}, {ip: %q}", ingress(one, false).Addr(), ingress(one, true).Addr())}
	p := newProxy(t, settings())
	for _, order := range [][]service{{one, two}, {one}, {two}} {
		p.cleanUp(t)
		p.start(t)
		p.set(t, order...)
		if len(order) == 1 {
			p.check(t, []row{{from: "outside", to: one, by: ingress, want: masqueraded(order[0].endpoints[0].place)}})
			p.set(t, one, two)
		}
		p.check(t, []row{
			{from: "outside", to: one, by: ingress, want: masqueraded("pod-1")},
			{from: client, to: two, by: clusterIP, want: kept("pod-2")},
			{from: "outside", to: two, by: nodePort, want: masqueraded("pod-2")},
		})
		if want := len(networks()) * len(model.Families); len(p.report.Conflicts) != want {
			t.Errorf("%d conflicts, want %d: %v", len(p.report.Conflicts), want, p.report.Conflicts)
		}
		for _, c := range p.report.Conflicts {
			if c.Winner.Name.Name != "one" || c.Loser.Name.Name != "two" || c.Frontend.Port != port {
				t.Errorf("conflict %v, want one to win over two", c)
			}
		}
	}
	// Once the winner is gone, the loser has it.
	p.set(t, two)
	p.check(t, []row{{from: "outside", to: one, by: ingress, want: masqueraded("pod-2")}})
}

// A lackingKernel refuses all that is in one table, as one without nft_chain_nat
// for its family does.
type lackingKernel struct {
	*kernel.Conn
	table rules.Table
}

func (k lackingKernel) Apply(ops []rules.Op) ([]uint64, error) {
	var refused kernel.Refused
	for _, op := range ops {
		if op.Place.Chain.Table == k.table && op.Verb == rules.AddChain && op.Hook != nil {
			refused.Objects = append(refused.Objects, kernel.Refusal{
				Place: op.Place, Verb: op.Verb, Errno: unix.ENOENT, Feature: "nft_chain_nat"})
		}
	}
	if len(refused.Objects) > 0 {
		return nil, &refused
	}
	return k.Conn.Apply(ops)
}

func TestKernelWithoutNATOfAFamily(t *testing.T) {
	t.Parallel()
	s := service{name: "web", number: 1, kind: "NodePort", endpoints: at("pod-1")}
	rows := []row{
		{from: client, to: s, by: clusterIP, want: kept("pod-1")},
		{from: "outside", to: s, by: nodePort, want: masqueraded("pod-1")},
	}
	for i := range rows {
		rows[i].only = "IPv4"
	}
	p := newProxy(t, settings())
	log, logged := observer.New(zap.WarnLevel)
	p.options.Logger = zap.New(log)

	p.options.Writer = lackingKernel{p.conn, rules.Table{Family: model.IPv6, Name: "nat"}}
	p.start(t)
	for _, endpoints := range [][]endpoint{at("pod-1"), at("pod-2"), nil, at("pod-1")} {
		p.set(t, s.with(endpoints...))
	}
	p.check(t, rows)
	if n := logged.FilterMessageSnippet("does not serve a family").Len(); n != 1 || len(p.report.Aside) != 0 {
		t.Errorf("said %d times, %v set aside", n, p.report.Aside)
	}

	// The node's first address is of IPv4, so that nothing works without.
	p.options.Writer = lackingKernel{p.conn, rules.Table{Family: model.IPv4, Name: "nat"}}
	p.cleanUp(t)
	p.run(t, "table ip nat {}; delete table ip nat", "nft", "-f", "-")
	p.start(t)
	err := p.sync(t, manifests(s))
	var refused *kernel.Refused
	if !errors.As(err, &refused) || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "nft_chain_nat") {
		t.Errorf("%v, want the chain that the kernel does not have", err)
	}
}
