package conntrack

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	timo "github.com/ti-mo/conntrack"
	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/sysctl"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestStatsCountFlows(t *testing.T) {
	err := labtest.Namespace(t).Do(func() error {
		const flows = 7
		makeFlows(t, flows)
		s, err := ReadStats()
		if err != nil {
			return err
		}
		if s.Entries != flows {
			t.Errorf("%d entries, want %d", s.Entries, flows)
		}
		if limit, err := (sysctl.Tree{}).Read("net/netfilter/nf_conntrack_max"); err != nil || limit != fmt.Sprint(s.Limit) {
			t.Errorf("limit is %d, sysctl says %q, %v", s.Limit, limit, err)
		}
		if want := flows / float64(s.Limit); s.Fill() != want {
			t.Errorf("fill is %v, want %v", s.Fill(), want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The kernel shows the same counters in /proc/net/stat/nf_conntrack, a line for
// each CPU: ct_cpu_seq_show, net/netfilter/nf_conntrack_standalone.c, Linux 6.18.
func TestStatsAreTheCountersThatProcShows(t *testing.T) {
	ns := labtest.Namespace(t)
	labtest.Run(t, ns, "", "iptables-nft", "-A", "INPUT", "-m", "conntrack", "--ctstate", "INVALID", "-j", "DROP")
	err := ns.Do(func() error {
		for range 3 {
			sendInvalid(t)
		}
		s, err := ReadStats()
		if err != nil {
			return err
		}
		if s.Invalid < 3 { // more, since loopback traffic passes twice
			t.Errorf("%d invalid packets, want 3 at least", s.Invalid)
		}
		shown := procStats(t)
		for name, got := range map[string]uint64{
			"invalid": s.Invalid, "insert_failed": s.InsertFailed, "drop": s.Drop, "early_drop": s.EarlyDrop,
			"icmp_error": s.Error, "search_restart": s.SearchRestart, "clashres": s.ClashResolved, "chainlength": s.ChainTooLong,
		} {
			if want, ok := shown[name]; !ok || got != want {
				t.Errorf("%s: %d, proc shows %d, %t", name, got, want, ok)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestStatsTellTheCountersApart(t *testing.T) {
	var s Stats
	for range 2 { // CPUs
		for kind := uint16(0); kind < 32; kind++ {
			s.addCPU(kind, uint64(kind)*100)
		}
	}
	s.setGlobal(ctaStatsGlobalEntries, 1)
	s.setGlobal(ctaStatsGlobalMax, 2)
	want := Stats{Entries: 1, Limit: 2, Invalid: 800, InsertFailed: 1800, Drop: 2000, EarlyDrop: 2200, Error: 2400,
		SearchRestart: 2600, ClashResolved: 2800, ChainTooLong: 3000}
	if s != want {
		t.Errorf("got %+v, want %+v", s, want)
	}
}

func TestStatsWithoutTheRightToReadAreAnError(t *testing.T) {
	err := labtest.Namespace(t).Do(func() error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&header, &none[0]); err != nil {
			return err
		}
		_, err := ReadStats()
		if err == nil || !strings.Contains(err.Error(), "connection tracking: number of flows") {
			t.Errorf("got %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFillOfATableWithoutLimitIsZero(t *testing.T) {
	if fill := (Stats{Entries: 5}).Fill(); fill != 0 {
		t.Errorf("got %v", fill)
	}
}

// makeFlows makes n flows in the namespace of this thread.
func makeFlows(t *testing.T, n int) {
	t.Helper()
	conn, err := timo.Dial(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i := range n {
		f := timo.NewFlow(unix.IPPROTO_UDP, 0, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), uint16(1000+i), 53, 100, 0)
		if err := conn.Create(f); err != nil {
			t.Fatal(err)
		}
	}
}

// sendInvalid sends a TCP header with SYN and FIN, which may not go together
// (tcp_valid_flags, net/netfilter/nf_conntrack_proto_tcp.c, Linux 6.18).
func sendInvalid(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	header := make([]byte, 20)
	header[1], header[3], header[12], header[13] = 1, 2, 5<<4, 0b11
	if err := unix.Sendto(fd, header, 0, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
}

// procStats sums the columns by name.
func procStats(t *testing.T) map[string]uint64 {
	t.Helper()
	content, err := os.ReadFile("/proc/thread-self/net/stat/nf_conntrack")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	names := strings.Fields(lines[0])
	sums := map[string]uint64{}
	for _, line := range lines[1:] {
		for i, field := range strings.Fields(line) {
			n, err := strconv.ParseUint(field, 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			sums[names[i]] += n
		}
	}
	return sums
}
