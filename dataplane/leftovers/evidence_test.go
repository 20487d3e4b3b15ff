package leftovers

import (
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestEvidenceConvictsNoServerOfOthers(t *testing.T) {
	e := evidence{
		addresses: map[netip.Addr]bool{netip.MustParseAddr("10.96.0.1"): true, netip.MustParseAddr("fd00:96::1"): true},
		nodePorts: map[nodePort]bool{{unix.IPPROTO_TCP, 30080}: true},
	}
	for _, c := range []struct {
		at       string
		protocol uint16
		mark     uint32
		want     bool
	}{
		{"10.96.0.1:80", unix.IPPROTO_TCP, 0, true},
		{"10.96.0.1:53", unix.IPPROTO_UDP, 0, true},
		{"[fd00:96::1]:80", unix.IPPROTO_SCTP, 0, true},
		{"192.0.2.1:30080", unix.IPPROTO_TCP, 0, true},
		{"[2001:db8::1]:30080", unix.IPPROTO_TCP, 0, true},
		{"192.0.2.1:30080", unix.IPPROTO_UDP, 0, false},
		{"192.0.2.1:80", unix.IPPROTO_TCP, 0, false},
		{"10.96.0.2:80", unix.IPPROTO_TCP, 0, false},
		{"10.96.0.1:80", unix.IPPROTO_TCP, 7, false},
	} {
		at := netip.MustParseAddrPort(c.at)
		if got := e.convicts(server{at.Addr(), c.protocol, at.Port(), c.mark}); got != c.want {
			t.Errorf("%s, protocol %d, mark %d: %v, want %v", c.at, c.protocol, c.mark, got, c.want)
		}
	}
}

func TestServerIsReadAsItIsWritten(t *testing.T) {
	for _, want := range []server{
		{netip.MustParseAddr("10.96.0.1"), unix.IPPROTO_TCP, 443, 0},
		{netip.MustParseAddr("fd00:96::1"), unix.IPPROTO_SCTP, 65535, 0},
	} {
		a, err := want.attribute()
		if err != nil {
			t.Fatal(err)
		}
		if got := readServer(a.Data); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

func TestCutRepliesAreNoServers(t *testing.T) {
	a, err := server{netip.MustParseAddr("10.96.0.1"), unix.IPPROTO_TCP, 443, 0}.attribute()
	if err != nil {
		t.Fatal(err)
	}
	e := evidence{addresses: map[netip.Addr]bool{netip.MustParseAddr("10.96.0.1"): true}}
	// The address is the third attribute, of 20 bytes, after two of 8.
	for n := range 36 {
		if s := readServer(a.Data[:n]); e.convicts(s) {
			t.Errorf("of %d bytes: %v", n, s)
		}
	}
}

func TestPortsOfASet(t *testing.T) {
	elements := []byte{
		12, 0, 7, 0x80, 6, 0, setAttrPort, 0x40, 0x75, 0x30, 0, 0, // 30000
		12, 0, 7, 0x80, 6, 0, setAttrPort, 0x40, 0x75, 0x31, 0, 0, // 30001
	}
	if got := readPorts(elements); !slices.Equal(got, []uint16{30000, 30001}) {
		t.Errorf("%d, want 30000 and 30001", got)
	}
	for n := range elements {
		if got := readPorts(elements[:n]); len(got) > 1 {
			t.Errorf("of %d bytes: %d", n, got)
		}
	}
}

func TestNamesOfSetsAreCutAsKubeProxyCutsThem(t *testing.T) {
	for name, want := range map[string]string{
		"LOAD-BALANCER-SOURCE-CIDR": "KUBE-6-LOAD-BALANCER-SOURCE-CID",
		"NODE-PORT-LOCAL-SCTP-HASH": "KUBE-6-NODE-PORT-LOCAL-SCTP-HAS",
		"CLUSTER-IP":                "KUBE-6-CLUSTER-IP",
	} {
		if got := setName("KUBE-6-", name); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
