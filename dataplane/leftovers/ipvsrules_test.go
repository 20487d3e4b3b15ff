package leftovers_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
)

// ipvsSets are the sets of the ipvs mode, as kube-proxy 1.37 makes them.
func ipvsSets() map[string]string {
	types := map[string]string{
		"KUBE-LOOP-BACK": "hash:ip,port,ip", "KUBE-LOAD-BALANCER-SOURCE-IP": "hash:ip,port,ip",
		"KUBE-LOAD-BALANCER-SOURCE-CIDR": "hash:ip,port,net", "KUBE-IPVS-IPS": "hash:ip",
	}
	for _, name := range strings.Fields(`CLUSTER-IP EXTERNAL-IP EXTERNAL-IP-LOCAL LOAD-BALANCER LOAD-BALANCER-FW
		LOAD-BALANCER-LOCAL NODE-PORT-SCTP-HASH NODE-PORT-LOCAL-SCTP-HASH`) {
		types["KUBE-"+name] = "hash:ip,port"
	}
	for _, name := range strings.Fields(`NODE-PORT-TCP NODE-PORT-LOCAL-TCP NODE-PORT-UDP NODE-PORT-LOCAL-UDP HEALTH-CHECK-NODE-PORT`) {
		types["KUBE-"+name] = "bitmap:port"
	}
	return types
}

const foreignRules = `*filter
:MINE - [0:0]
-A INPUT -p tcp -m tcp --dport 22 -j MINE
-A MINE -j ACCEPT
COMMIT
`

func newIPVSNode(t *testing.T) node {
	t.Helper()
	n := newNode(t)
	n.run(foreignRules, "iptables-nft-restore")
	n.makeSets(ipvsSets())
	n.run(testdata(t, "ipvs-mode.rules"), "iptables-nft-restore", "--noflush")
	return n
}

// set synchronises with one service.
func (n node) set() {
	n.t.Helper()
	d, err := dataplane.New(dataplane.Options{Reader: n.Conn, Writer: n.Conn, Plan: plan.Options{MasqueradeBit: 14}})
	if err != nil {
		n.t.Fatal(err)
	}
	http := model.PortKey{Port: "http", Protocol: model.TCP}
	service := &model.Service{
		Name:       model.Name{Namespace: "default", Name: "web"},
		Ports:      []model.Port{{PortKey: http, Number: 80, NodePort: 30080}},
		ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.41")},
		Endpoints: map[model.PortKey][]model.Endpoint{
			http: {{Addr: netip.MustParseAddrPort("10.244.1.5:8080"), Ready: true, Serving: true}},
		},
	}
	all := model.Services{}.With(map[model.Name]*model.Service{service.Name: service})
	if err := d.Set(context.Background(), model.Snapshot{Services: all}); err != nil {
		n.t.Fatal(err)
	}
}

// save returns what iptables-nft-save lists without counts.
func (n node) save() string { return n.run("", "iptables-nft-save") }

func TestChainsOfTheIPVSModeGoWithTheFirstSynchronisation(t *testing.T) {
	n := newIPVSNode(t)
	n.set()
	saved := n.save()
	for _, gone := range []string{"KUBE-NODE-PORT ", "KUBE-NODE-PORT\n", "KUBE-LOAD-BALANCER", "KUBE-SOURCE-RANGES", "KUBE-IPVS", "--match-set"} {
		if strings.Contains(saved, gone) {
			t.Errorf("%q is still in\n%s", gone, saved)
		}
	}
	for _, there := range []string{"KUBE-SERVICES -d 10.96.0.41/32", "-A INPUT -p tcp -m tcp --dport 22 -j MINE", "-A MINE -j ACCEPT"} {
		if !strings.Contains(saved, there) {
			t.Errorf("%q is not in\n%s", there, saved)
		}
	}
	n.wantSetsGone()
}

func TestChainsOfTheIPVSModeAreCleanedUp(t *testing.T) {
	n := newIPVSNode(t)
	if _, err := dataplane.Cleanup(n.Conn, n.Conn); err != nil {
		t.Fatal(err)
	}
	saved := n.save()
	if strings.Contains(saved, "KUBE-") || !strings.Contains(saved, "-j MINE") {
		t.Errorf("left is\n%s", saved)
	}
	n.wantSetsGone()
}

// wantSetsGone wants that all sets can be removed, at once.
func (n node) wantSetsGone() {
	n.t.Helper()
	removed := n.remove()
	if stays := slices.IndexFunc(removed, func(s string) bool { return strings.Contains(s, "stays") }); stays >= 0 || len(removed) != len(ipvsSets()) {
		n.t.Errorf("removed %q, want all %d sets", removed, len(ipvsSets()))
	}
	n.wantSets()
}
