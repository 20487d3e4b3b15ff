package leftovers_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/leftovers"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
)

func testdata(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const foreignTables = `
table inet kube-proxy { chain c { type filter hook input priority 0; tcp dport 22 counter packets 3 bytes 180 accept; }; }
table ip kube-proxy-mine { set s { type ipv4_addr; elements = { 192.0.2.1 }; }; }
table ip6 nat { chain PREROUTING { type nat hook prerouting priority -100; }; }
`

func TestTablesOfTheNftablesModeGo(t *testing.T) {
	n := newNode(t)
	n.run(foreignTables, "nft", "-f", "-")
	before := n.run("", "nft", "list", "ruleset")
	n.run(testdata(t, "nftables-mode.nft"), "nft", "-f", "-")
	n.wantRemoved("nftables table ip kube-proxy", "nftables table ip6 kube-proxy")
	if after := n.run("", "nft", "list", "ruleset"); after != before {
		t.Errorf("foreign tables were\n%s\nand are\n%s", before, after)
	}
}

func TestTableOfOneFamilyGoes(t *testing.T) {
	n := newNode(t)
	n.run("", "nft", "add table ip6 kube-proxy")
	n.wantRemoved("nftables table ip6 kube-proxy")
}

// tables is a kernel with the tables of both families that takes no
// transaction.
type tables struct{ transactions [][]rules.Op }

func (*tables) Tables() ([]rules.Table, error) {
	return []rules.Table{{Family: model.IPv4, Name: "kube-proxy"}, {Family: model.IPv6, Name: "kube-proxy"}}, nil
}

func (k *tables) Apply(ops []rules.Op) ([]uint64, error) {
	k.transactions = append(k.transactions, ops)
	return nil, unix.EPERM
}

func TestTablesOfBothFamiliesGoInOneTransaction(t *testing.T) {
	newNode(t).do(func() error {
		k := &tables{}
		found, err := leftovers.Remove(t.Context(), leftovers.Options{Kernel: k})
		if len(k.transactions) != 1 || len(k.transactions[0]) != 2 {
			t.Errorf("transactions %v, want one of two operations", k.transactions)
		}
		if len(found) != 2 || !errors.Is(found[0].Kept, unix.EPERM) || !errors.Is(found[1].Kept, unix.EPERM) {
			t.Errorf("found %v, want two that stay", found)
		}
		if !errors.Is(err, unix.EPERM) || !strings.HasPrefix(err.Error(), "leftovers of kube-proxy's nftables mode: ") {
			t.Errorf("%v, want EPERM of the nftables mode", err)
		}
		return nil
	})
}

func TestStepThatFailsDoesNotStopOthers(t *testing.T) {
	n := newNode(t)
	n.makeSets(map[string]string{"KUBE-CLUSTER-IP": "hash:ip,port"})
	n.do(func() error {
		found, err := leftovers.Remove(t.Context(), leftovers.Options{Kernel: &tables{}})
		if !errors.Is(err, unix.EPERM) {
			t.Errorf("%v, want EPERM", err)
		}
		if i := slices.IndexFunc(found, func(f leftovers.Found) bool { return f.Name == "KUBE-CLUSTER-IP" && f.Kept == nil }); i < 0 {
			t.Errorf("found %v, want the set gone", found)
		}
		return nil
	})
	n.wantSets()
}
