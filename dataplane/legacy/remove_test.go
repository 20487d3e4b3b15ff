package legacy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/nlproxy/nlproxy/integration/golden"
)

// small is a kube-proxy's nat table and a rule of somebody else.
const small = `*nat
:PREROUTING ACCEPT [1:10]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [2:20]
:POSTROUTING ACCEPT [3:30]
:FOREIGN - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-A - [0:0]
[4:40] -A PREROUTING -j KUBE-SERVICES
[5:50] -A PREROUTING -p tcp -j FOREIGN
[6:60] -A OUTPUT -g KUBE-SERVICES
[7:70] -A FOREIGN -p udp -j ACCEPT
[8:80] -A KUBE-SERVICES -p tcp -j KUBE-SVC-A
[9:90] -A KUBE-SVC-A -p tcp -j ACCEPT
COMMIT
`

func TestWhatIsRemovedIsFoundBefore(t *testing.T) {
	n := newNode(t)
	n.restore(model.IPv4, small)
	before := n.save(model.IPv4)
	var found []Removed
	err := n.Do(func() (err error) {
		found, err = Find(n.options)
		return err
	})
	want := []Removed{{
		Table:  rules.Table{Family: model.IPv4, Name: "nat"},
		Chains: []string{"KUBE-SERVICES", "KUBE-SVC-A"},
		Rules:  4,
	}}
	if diff := cmp.Diff(want, found); diff != "" || err != nil {
		t.Errorf("found, %v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(before, n.save(model.IPv4)); diff != "" {
		t.Errorf("finding has changed (-before +now):\n%s", diff)
	}
	if diff := cmp.Diff(want, n.mustRemove()); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(without(small), n.save(model.IPv4)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func TestChainThatOthersJumpToIsEmptied(t *testing.T) {
	for name, jump := range map[string]string{"jump": "-j", "goto": "-g"} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.restore(model.IPv4, strings.Replace(small,
				"[7:70] -A FOREIGN -p udp -j ACCEPT", "[7:70] -A FOREIGN -p udp "+jump+" KUBE-SVC-A", 1))
			removed := n.mustRemove()
			want := []Removed{{
				Table:   rules.Table{Family: model.IPv4, Name: "nat"},
				Chains:  []string{"KUBE-SERVICES"},
				Emptied: []string{"KUBE-SVC-A"},
				Rules:   4,
			}}
			if diff := cmp.Diff(want, removed); diff != "" {
				t.Errorf("removed (-want +got):\n%s", diff)
			}
			left := strings.NewReplacer(
				":FOREIGN - [0:0]", ":FOREIGN - [0:0]\n:KUBE-SVC-A - [0:0]",
				"[7:70] -A FOREIGN -p udp -j ACCEPT", "[7:70] -A FOREIGN -p udp "+jump+" KUBE-SVC-A",
			).Replace(without(small))
			if diff := cmp.Diff(left, n.save(model.IPv4)); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
			if again := n.mustRemove(); again != nil {
				t.Errorf("again removed %v", again)
			}
		})
	}
}

func TestJumpsGoFromTheChainSharedWithTheKubelet(t *testing.T) {
	n := newNode(t)
	dump := "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:KUBE-FIREWALL - [0:0]\n"
	rule := "[1:10] -A KUBE-FIREWALL -d 127.0.0.0/8 -j DROP\n"
	n.restore(model.IPv4, dump+":KUBE-FORWARD - [0:0]\n-A KUBE-FIREWALL -j KUBE-FORWARD\n"+rule+"COMMIT\n")
	if removed := n.mustRemove(); len(removed) != 1 || removed[0].Rules != 1 || removed[0].Emptied != nil {
		t.Errorf("removed %v", removed)
	}
	if diff := cmp.Diff(dump+rule+"COMMIT\n", n.save(model.IPv4)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func TestBaseChainsThatDropAreNamed(t *testing.T) {
	n := newNode(t)
	n.restore(model.IPv6, `*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:KUBE-FORWARD - [0:0]
-A INPUT -p tcp -j ACCEPT
-A FORWARD -p tcp -j ACCEPT
-A FORWARD -j KUBE-FORWARD
-A OUTPUT -j KUBE-FORWARD
COMMIT
`)
	want := []Removed{{
		Table:    rules.Table{Family: model.IPv6, Name: "filter"},
		Chains:   []string{"KUBE-FORWARD"},
		Rules:    2,
		Dropping: []string{"FORWARD"},
	}}
	if diff := cmp.Diff(want, n.mustRemove()); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
}

// ipvs is what kube-proxy has in ipvs mode, less the sets.
const ipvs = `*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-LOAD-BALANCER - [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-NODE-PORT - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-XLB-OLD - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A KUBE-LOAD-BALANCER -j KUBE-MARK-MASQ
-A KUBE-NODE-PORT -j KUBE-XLB-OLD
-A KUBE-SERVICES -j KUBE-LOAD-BALANCER
-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODE-PORT
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:KUBE-FORWARD - [0:0]
:KUBE-IPVS-FILTER - [0:0]
:KUBE-IPVS-OUT-FILTER - [0:0]
:KUBE-NODE-PORT - [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
:KUBE-SOURCE-RANGES-FIREWALL - [0:0]
-A INPUT -m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-FILTER
-A INPUT -m comment --comment "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL
-A INPUT -m comment --comment "kubernetes health check rules" -j KUBE-NODE-PORT
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A FORWARD -m comment --comment "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL
-A OUTPUT -m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-OUT-FILTER
-A KUBE-PROXY-FIREWALL -j KUBE-SOURCE-RANGES-FIREWALL
-A KUBE-SOURCE-RANGES-FIREWALL -j DROP
COMMIT
`

func TestChainsOfIPVSModeAreRemoved(t *testing.T) {
	for _, f := range model.Families {
		n := newNode(t)
		if removed := n.wantForeign(f, ipvs); len(removed) != 2 || removed[1].Rules != 8 {
			t.Errorf("%s: removed %v", f, removed)
		}
	}
}

func TestNothingIsWrittenWhereNothingIsLeft(t *testing.T) {
	n := newNode(t)
	n.accounting()
	writes := n.spy(spy{})
	for _, f := range model.Families {
		n.restore(f, foreignOf(f))
	}
	if removed := n.mustRemove(); removed != nil || *writes != 0 {
		t.Errorf("among rules of others: removed %v in %d writes", removed, *writes)
	}
	kube := kubeProxys(golden.Named(t, "16-dual-stack"))
	for _, f := range model.Families {
		n.restore(f, mixed(foreignOf(f), kube[f]))
	}
	if removed := n.mustRemove(); len(removed) != 6 || *writes != 2*6 {
		t.Errorf("removed %v in %d writes", removed, *writes)
	}
	if removed := n.mustRemove(); removed != nil || *writes != 2*6 {
		t.Errorf("again removed %v, in all in %d writes", removed, *writes)
	}
}

func TestTableIsMadeOnlyByOthers(t *testing.T) {
	n := newNode(t)
	if removed := n.mustRemove(); removed != nil {
		t.Errorf("removed %v from nothing", removed)
	}
	if names := n.names(); names != nil {
		t.Fatalf("there are tables %v", names)
	}
	n.restore(model.IPv6, "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:KUBE-FORWARD - [0:0]\nCOMMIT\n")
	n.mustRemove()
	if names := fmt.Sprint(n.names()); names != "[IPv6 filter]" {
		t.Errorf("there are tables %s", names)
	}
}
