package legacy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// node is an empty namespace in which iptables-legacy and Remove share a lock
// that nobody else has.
type node struct {
	*lab.Namespace
	t       testing.TB
	options Options
}

// lockVariable is how iptables 1.8.9 is told of another lock.
const lockVariable = "XTABLES_LOCKFILE"

func newNode(t testing.TB) *node {
	t.Helper()
	n := &node{Namespace: labtest.Namespace(t), t: t}
	if n.options.Lock = os.Getenv(lockVariable); n.options.Lock != "" {
		return n
	}
	n.options.Lock = filepath.Join(t.TempDir(), "lock")
	if err := os.WriteFile(n.options.Lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(lockVariable, n.options.Lock)
	return n
}

// tool is the name of a program of iptables-legacy, such as "-save".
func tool(f model.Family, name string) string {
	if f == model.IPv6 {
		return "ip6tables-legacy" + name
	}
	return "iptables-legacy" + name
}

// restore writes tables, counters included.
func (n *node) restore(f model.Family, text string) {
	n.t.Helper()
	labtest.Run(n.t, n.Namespace, text, tool(f, "-restore"), "--counters", "--wait", "30")
}

// rule runs a command of iptables-legacy.
func (n *node) rule(f model.Family, args ...string) {
	n.t.Helper()
	labtest.Run(n.t, n.Namespace, "", tool(f, ""), append([]string{"--wait", "30"}, args...)...)
}

// save is all that there is of a family, counters included.
func (n *node) save(f model.Family) string {
	n.t.Helper()
	var kept []string
	for line := range strings.Lines(labtest.Run(n.t, n.Namespace, "", tool(f, "-save"), "--counters")) {
		if !strings.HasPrefix(line, "#") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// remove calls Remove in the namespace.
func (n *node) remove() (removed []Removed, err error) {
	err = n.Do(func() error {
		removed, err = Remove(n.t.Context(), n.options)
		return err
	})
	return removed, err
}

// mustRemove fails the test if Remove fails.
func (n *node) mustRemove() []Removed {
	n.t.Helper()
	removed, err := n.remove()
	if err != nil {
		n.t.Fatal(err)
	}
	return removed
}

// names are the tables that the kernel has there, of both families.
func (n *node) names() (all []string) {
	n.t.Helper()
	err := n.Do(func() error {
		for _, f := range model.Families {
			b, err := os.ReadFile(filepath.Join("/proc", namesFiles[f]))
			if err != nil {
				return err
			}
			for name := range strings.FieldsSeq(string(b)) {
				all = append(all, fmt.Sprint(f, " ", name))
			}
		}
		return nil
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return all
}

// accounting makes the counters and sets that rules name.
func (n *node) accounting() {
	n.t.Helper()
	for _, name := range []string{"ct_state_invalid_dropped_pkts", "localhost_nps_accepted_pkts"} {
		labtest.Run(n.t, n.Namespace, "", "nfacct", "add", name)
	}
	labtest.Run(n.t, n.Namespace, "create FOREIGN4 hash:ip\ncreate FOREIGN6 hash:ip family inet6\n", "ipset", "restore")
}

// A spy is a socket that counts what is written, and does something before.
type spy struct {
	socket
	writes  *int
	replace func() error
	count   func() error
}

func (s spy) set(option int, value []byte) error {
	*s.writes++
	if s.count != nil {
		if err := s.count(); err != nil {
			return err
		}
	}
	return s.socket.set(option, value)
}

type replacing struct{ spy }

func (r replacing) replace(value, old []byte) error {
	*r.writes++
	if r.spy.replace != nil {
		if err := r.spy.replace(); err != nil {
			return err
		}
	}
	return r.socket.replace(value, old)
}

// spy has all sockets watched by s, and returns how often they write.
func (n *node) spy(s spy) *int {
	s.writes = new(int)
	n.options.dial = func(f model.Family) (socket, error) {
		inner, err := dial(f)
		s.socket = inner
		return replacing{s}, err
	}
	return s.writes
}

// A line of a dump, which declares a chain or is a rule of one, and may jump.
var (
	declared = regexp.MustCompile(`^:(\S+) `)
	chainOf  = regexp.MustCompile(`^(?:\[\d+:\d+\] )?-A (\S+)`)
	jumpOf   = regexp.MustCompile(` -[jg] (\S+)`)
	proxys   = regexp.MustCompile(`^KUBE-`)
	kubelets = regexp.MustCompile(`^KUBE-(FIREWALL|MARK-DROP|IPTABLES-HINT|KUBELET-CANARY)$`)
	baseOnes = regexp.MustCompile(`^(PREROUTING|INPUT|FORWARD|OUTPUT|POSTROUTING)$`)
)

func isProxys(chain string) bool { return proxys.MatchString(chain) && !kubelets.MatchString(chain) }

// first is what r captures of a line.
func first(r *regexp.Regexp, line string) string {
	if found := r.FindStringSubmatch(line); found != nil {
		return found[1]
	}
	return ""
}

// without is what is left of a dump once what is kube-proxy's is taken out.
func without(dump string) string {
	var b strings.Builder
	for part := range strings.SplitAfterSeq(dump, "COMMIT\n") {
		b.WriteString(tableWithout(part))
	}
	return b.String()
}

func tableWithout(dump string) string {
	held := map[string]bool{}
	for line := range strings.Lines(dump) {
		if chain := first(chainOf, line); chain != "" && !isProxys(chain) && !baseOnes.MatchString(chain) {
			held[first(jumpOf, line)] = true
		}
	}
	var b strings.Builder
	for line := range strings.Lines(dump) {
		name, chain := first(declared, line), first(chainOf, line)
		unhooked := baseOnes.MatchString(chain) && isProxys(first(jumpOf, line))
		if isProxys(name) && !held[name] || isProxys(chain) || unhooked {
			continue
		}
		b.WriteString(line)
	}
	return b.String()
}

// wantForeign removes what is kube-proxy's from dump, and fails unless exactly
// the rest is in the kernel then.
func (n *node) wantForeign(f model.Family, dump string) []Removed {
	n.t.Helper()
	n.restore(f, dump)
	before := n.save(f)
	removed := n.mustRemove()
	alone := newNode(n.t)
	alone.accounting()
	alone.restore(f, without(dump))
	want, got := alone.save(f), n.save(f)
	if want == before {
		n.t.Fatalf("nothing was to be removed from\n%s", before)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		n.t.Errorf("-want +got:\n%s", diff)
	}
	return removed
}

// flock takes the lock of iptables-legacy until the function that it returns is
// called.
func (n *node) flock() (unlock func()) {
	n.t.Helper()
	f, err := os.Open(n.options.Lock)
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return func() { f.Close() }
}

// add writes a dump's rules of kube-proxy beside all that there is.
func (n *node) add(dump string) {
	n.t.Helper()
	var text strings.Builder
	for line := range strings.Lines(dump) {
		if line[0] == '*' || line == "COMMIT\n" || without(line) == "" {
			text.WriteString(line)
		}
	}
	labtest.Run(n.t, n.Namespace, text.String(), tool(model.IPv4, "-restore"), "--counters", "--noflush", "--wait", "30")
}
