package takeover

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/nlproxy/nlproxy/integration/cluster"
	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
	"github.com/nlproxy/nlproxy/integration/site"
)

func TestMain(m *testing.M) { site.Main(m) }

// A rig is a site with services of every kind, and rules of somebody else.
type rig struct {
	*site.Site
	kind     kind
	services []objects.Service
}

// count is how many services there are.
const count = 300

func newRig(t *testing.T, k kind) *rig {
	t.Helper()
	r := &rig{Site: site.New(t, site.Options{Pods: 3, Remote: 3, Networks: []string{"tcp", "udp"}}), kind: k}
	r.others(t)
	for i := range count {
		r.services = append(r.services, r.service(1+i))
	}
	r.Create(t, []byte(objects.Documents(t, r.services...)))
	return r
}

// The services whose number has one of these remainders by four are of a kind.
const (
	clusterIP = iota
	nodePort
	balanced
	sticky
)

func (r *rig) service(number int) objects.Service {
	s := objects.Service{
		Name: fmt.Sprintf("service-%d", number), Number: number, DualStack: true,
		Endpoints: objects.At(r.Pods[0], r.Pods[1+number%2], r.Remote[number%3]),
	}
	switch number % 4 {
	case nodePort:
		s.Type = corev1.ServiceTypeNodePort
	case balanced:
		s.Type = corev1.ServiceTypeLoadBalancer
	case sticky:
		s.Type, s.Affinity = corev1.ServiceTypeNodePort, true
	}
	if number > 250 { // there are no more addresses of load balancers
		s.Type = ""
	}
	return s
}

// startKubeProxy starts kube-proxy, which has programmed the kernel then.
func (r *rig) startKubeProxy(t *testing.T, b cluster.Backend) *lab.Process {
	t.Helper()
	config := strings.Replace(daemon.Configuration(minSyncPeriod), "mode: iptables", "mode: "+r.kind.mode, 1)
	return r.StartKubeProxyOn(t, b, []byte(config))
}

// start starts nlproxy with kube-proxy's rights, and waits until it has
// programmed the kernel.
func (r *rig) start(t *testing.T) *daemon.Daemon {
	t.Helper()
	d := daemon.Start(t, r.Options(t, cluster.KubeProxy, minSyncPeriod))
	t.Logf("nlproxy beside %s: %s", r.kind.backend, d.Synchronised(t).Line)
	return d
}

const minSyncPeriod = 100 * time.Millisecond

// run runs a program on the node.
func (r *rig) run(t *testing.T, input, program string, args ...string) string {
	t.Helper()
	return labtest.Run(t, r.Self.Namespace, input, program, args...)
}

// stranger is an address that nobody has, so that rules about it count
// nothing. It is in every rule of somebody else.
const stranger = "198.51.100.77"

// others makes rules of somebody else, with counters that are not zero, in the
// tables that kube-proxy uses too and in one of their own.
func (r *rig) others(t *testing.T) {
	t.Helper()
	r.run(t, strings.ReplaceAll(`*nat
:FOREIGN - [0:0]
[7:420] -A PREROUTING -s STRANGER/32 -j FOREIGN
[6:360] -A POSTROUTING -s STRANGER/32 -j FOREIGN
[3:180] -A FOREIGN -s STRANGER/32 -p tcp -m tcp --dport 9 -m comment --comment "KUBE-SERVICES of somebody else" -j ACCEPT
COMMIT
*filter
:FOREIGN - [0:0]
[5:300] -A FORWARD -s STRANGER/32 -m conntrack --ctstate NEW -j FOREIGN
[4:240] -A INPUT -s STRANGER/32 -j FOREIGN
[2:120] -A FOREIGN -s STRANGER/32 -j DROP
COMMIT
`, "STRANGER", stranger), "iptables-nft-restore", "--noflush", "--counters")
	r.run(t, `table inet foreign {
	set addresses { type ipv4_addr; elements = { `+stranger+` } }
	chain forward {
		type filter hook forward priority 10
		ip saddr `+stranger+` counter packets 11 bytes 660 drop
	}
}
`, "nft", "-f", "-")
}

// foreign is what there is of those rules, with counters and handles, in their
// order.
func (r *rig) foreign(t *testing.T) string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(r.run(t, "", "nft", "-a", "list", "ruleset")) {
		if strings.Contains(line, stranger) || strings.Contains(strings.ToLower(line), "foreign") {
			lines = append(lines, line)
		}
	}
	if len(lines) < 11 {
		t.Fatalf("rules of somebody else are missing:\n%s", strings.Join(lines, ""))
	}
	return strings.Join(lines, "")
}
