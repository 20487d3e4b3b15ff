package leftovers_test

import (
	"strings"
	"testing"
)

func TestLegacyTablesGoBeforeTheSetsOfTheirRules(t *testing.T) {
	n := newNode(t)
	n.makeSets(map[string]string{"KUBE-CLUSTER-IP": "hash:ip,port"})
	n.run(`*nat
:KUBE-SERVICES - [0:0]
:KUBE-LOAD-BALANCER - [0:0]
:MINE - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A PREROUTING -j MINE
-A KUBE-SERVICES -m set --match-set KUBE-CLUSTER-IP dst,dst -j KUBE-LOAD-BALANCER
COMMIT
`, "iptables-legacy-restore")
	n.wantRemoved("legacy table ip nat (2 chains and 2 rules)", "ipset KUBE-CLUSTER-IP")
	if left := n.run("", "iptables-legacy-save"); strings.Contains(left, "KUBE-") || !strings.Contains(left, "-A PREROUTING -j MINE\n") {
		t.Errorf("left is\n%s", left)
	}
}
