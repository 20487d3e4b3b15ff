package legacy

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

// The services of the benchmarks, each with as many endpoints.
const (
	manyServices  = 5000
	manyEndpoints = 5
)

// many is a kube-proxy's nat table, with a rule of somebody else.
func many() string {
	var chains, rules strings.Builder
	for s := range manyServices {
		fmt.Fprintf(&chains, ":KUBE-SVC-%016d - [0:0]\n", s)
		comment := fmt.Sprintf(`-m comment --comment "default/service-%d:http`, s)
		fmt.Fprintf(&rules, "-A KUBE-SERVICES -d 10.96.%d.%d/32 -p tcp %s cluster IP\" -m tcp --dport 80 -j KUBE-SVC-%016d\n", s/250, 1+s%250, comment, s)
		for e := range manyEndpoints {
			name, to := fmt.Sprintf("KUBE-SEP-%015d%d", s, e), fmt.Sprintf("10.%d.%d.%d", 100+e, s/250, 1+s%250)
			fmt.Fprintf(&chains, ":%s - [0:0]\n", name)
			random := ""
			if left := manyEndpoints - e; left > 1 {
				random = fmt.Sprintf(" -m statistic --mode random --probability %.10f", 1/float64(left))
			}
			fmt.Fprintf(&rules, "-A KUBE-SVC-%016d %s -> %s:8080\"%s -j %s\n", s, comment, to, random, name)
			fmt.Fprintf(&rules, "-A %s -s %s/32 %s\" -j KUBE-MARK-MASQ\n", name, to, comment)
			fmt.Fprintf(&rules, "-A %s -p tcp %s\" -m tcp -j DNAT --to-destination %s:8080\n", name, comment, to)
		}
	}
	return "*nat\n:FOREIGN - [0:0]\n:KUBE-MARK-MASQ - [0:0]\n:KUBE-SERVICES - [0:0]\n" + chains.String() +
		"-A PREROUTING -j KUBE-SERVICES\n-A PREROUTING -p udp -j FOREIGN\n-A OUTPUT -j KUBE-SERVICES\n" +
		"-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000\n" + rules.String() + "COMMIT\n"
}

func BenchmarkRemove5000Services(b *testing.B) {
	n, dump := newNode(b), many()
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		n.restore(model.IPv4, dump)
		b.StartTimer()
		removed := n.mustRemove()
		if len(removed) != 1 || removed[0].Rules != 2+1+manyServices*(1+3*manyEndpoints) {
			b.Fatalf("removed %v", removed)
		}
	}
}

// BenchmarkRemove5000ServicesByTool does with iptables-legacy what kube-proxy
// does: it saves the table for the names of the chains, and restores them as
// deleted.
func BenchmarkRemove5000ServicesByTool(b *testing.B) {
	n, dump := newNode(b), many()
	for b.Loop() {
		b.StopTimer()
		n.restore(model.IPv4, dump)
		b.StartTimer()
		n.removeByTool(b)
	}
	if left := n.save(model.IPv4); strings.Contains(left, "KUBE-") {
		b.Errorf("left:\n%s", left)
	}
}

func (n *node) removeByTool(b *testing.B) {
	b.Helper()
	n.rule(model.IPv4, "-t", "nat", "-D", "PREROUTING", "-j", "KUBE-SERVICES")
	n.rule(model.IPv4, "-t", "nat", "-D", "OUTPUT", "-j", "KUBE-SERVICES")
	var flush, remove strings.Builder
	for line := range strings.Lines(labtest.Run(b, n.Namespace, "", "iptables-legacy-save", "-t", "nat")) {
		if name := first(declared, line); isProxys(name) {
			fmt.Fprintf(&flush, ":%s - [0:0]\n", name)
			fmt.Fprintf(&remove, "-X %s\n", name)
		}
	}
	cmd := exec.Command("iptables-legacy-restore", "--noflush", "--counters", "--wait", "30")
	cmd.Stdin = strings.NewReader("*nat\n" + flush.String() + remove.String() + "COMMIT\n")
	start := time.Now()
	if err := n.Do(cmd.Run); err != nil {
		b.Fatalf("%s: %v", cmd, err)
	}
	b.ReportMetric(float64(time.Since(start).Milliseconds()), "restore-ms")
	b.ReportMetric(float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)/1024, "restore-MB")
}
