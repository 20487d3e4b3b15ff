package leftovers_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/nlproxy/nlproxy/dataplane/leftovers"
)

// makeSets makes sets, by name their types.
func (n node) makeSets(types map[string]string) {
	n.t.Helper()
	n.do(func() error {
		for name, kind := range types {
			if err := netlink.IpsetCreate(name, kind, netlink.IpsetCreateOptions{PortTo: 65535}); err != nil {
				return fmt.Errorf("make set %s: %w", name, err)
			}
		}
		return nil
	})
}

func TestSetsGoByTheirNames(t *testing.T) {
	n := newNode(t)
	n.makeSets(map[string]string{
		"KUBE-CLUSTER-IP": "hash:ip,port", "KUBE-LOAD-BALANCER-SOURCE-CIDR": "hash:ip,port,net",
		"KUBE-6-LOAD-BALANCER-SOURCE-CID": "hash:ip,port,net", "KUBE-NODE-PORT-SCTP": "bitmap:port", "KUBE-NODE-PORT-TCP": "bitmap:port",
		"KUBE-POD-ISOLATION": "hash:ip", "cali40all": "hash:ip",
	})
	n.do(func() error { return leftovers.AddPorts("KUBE-NODE-PORT-TCP", 30080, 30081) })
	n.wantRemoved("ipset KUBE-CLUSTER-IP", "ipset KUBE-LOAD-BALANCER-SOURCE-CIDR", "ipset KUBE-NODE-PORT-TCP",
		"ipset KUBE-NODE-PORT-SCTP", "ipset KUBE-6-LOAD-BALANCER-SOURCE-CID")
	n.wantSets("KUBE-POD-ISOLATION", "cali40all")
}

func (n node) wantSets(want ...string) {
	n.t.Helper()
	var names []string
	n.do(func() error {
		sets, err := netlink.IpsetListAll()
		for _, s := range sets {
			names = append(names, s.SetName)
		}
		return err
	})
	slices.Sort(names)
	if !slices.Equal(names, want) {
		n.t.Errorf("sets %q, want %q", names, want)
	}
}

func TestSetThatOthersReferToStays(t *testing.T) {
	n := newNode(t)
	n.makeSets(map[string]string{"KUBE-CLUSTER-IP": "hash:ip,port", "KUBE-EXTERNAL-IP": "hash:ip,port"})
	n.run("", "iptables-nft", "-A", "INPUT", "-m", "set", "--match-set", "KUBE-CLUSTER-IP", "dst,dst", "-j", "ACCEPT")
	if got, want := n.remove(), []string{"ipset KUBE-CLUSTER-IP (stays: rules of others refer to it)", "ipset KUBE-EXTERNAL-IP"}; !slices.Equal(got, want) {
		t.Errorf("removed %q, want %q", got, want)
	}
	n.wantSets("KUBE-CLUSTER-IP")
	n.run("", "iptables-nft", "-F", "INPUT")
	n.wantRemoved("ipset KUBE-CLUSTER-IP")
}
