package leftovers_test

import (
	"errors"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/leftovers"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

// Only root outside of a user namespace may ask IPVS (GENL_ADMIN_PERM in
// net/netfilter/ipvs/ip_vs_ctl.c, Linux 6.18).
func TestMain(m *testing.M) { labtest.MainAsRoot(m) }

// node is an empty namespace and a connection to it.
type node struct {
	*lab.Namespace
	*kernel.Conn
	t testing.TB
}

func newNode(t testing.TB) (n node) {
	t.Helper()
	n = node{Namespace: labtest.Namespace(t), t: t}
	n.do(func() (err error) {
		n.Conn, err = kernel.Dial(kernel.Options{})
		return err
	})
	t.Cleanup(func() { n.Conn.Close() })
	return n
}

func (n node) do(fn func() error) {
	n.t.Helper()
	if err := n.Do(fn); err != nil {
		n.t.Fatal(err)
	}
}

// run runs a program in the namespace and returns what it printed.
func (n node) run(input, program string, args ...string) (out string) {
	n.t.Helper()
	labtest.Tools(n.t, program)
	cmd := exec.Command(program, args...)
	cmd.Stdin = strings.NewReader(input)
	err := n.Do(func() error {
		b, err := cmd.CombinedOutput()
		out = string(b)
		return err
	})
	if err != nil {
		n.t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return out
}

// find and remove return what was found, as text.
func (n node) find() []string   { n.t.Helper(); return n.try(leftovers.Find) }
func (n node) remove() []string { n.t.Helper(); return n.try(n.removeAll) }

func (n node) removeAll(o leftovers.Options) ([]leftovers.Found, error) {
	return leftovers.Remove(n.t.Context(), o)
}

func (n node) try(what func(leftovers.Options) ([]leftovers.Found, error)) (all []string) {
	n.t.Helper()
	n.do(func() error {
		found, err := what(leftovers.Options{Kernel: n.Conn})
		for _, f := range found {
			all = append(all, f.String())
		}
		return err
	})
	return all
}

// wantRemoved wants that these are found and removed, and then nothing more.
func (n node) wantRemoved(want ...string) {
	n.t.Helper()
	if found := n.find(); !slices.Equal(found, want) {
		n.t.Errorf("found %q, want %q", found, want)
	}
	if removed := n.remove(); !slices.Equal(removed, want) {
		n.t.Errorf("removed %q, want %q", removed, want)
	}
	if again := n.remove(); len(again) != 0 {
		n.t.Errorf("removed after that: %q", again)
	}
}

func TestNothingIsFoundInAnEmptyNamespace(t *testing.T) {
	newNode(t).wantRemoved()
}

func TestOptionsNameWhatIsMissing(t *testing.T) {
	if _, err := leftovers.Find(leftovers.Options{}); err == nil || err.Error() != "leftovers: Kernel is missing" {
		t.Errorf("%v", err)
	}
}

func TestDescriptionNamesAtMostTwentyOfAKind(t *testing.T) {
	found := []leftovers.Found{{Kind: "nftables table", Name: "ip kube-proxy"}}
	for i := range 23 {
		found = append(found, leftovers.Found{Kind: "ipset", Name: strconv.Itoa(i + 1)})
	}
	found = append(found, leftovers.Found{Kind: "device", Name: "kube-ipvs0", Note: "note", Kept: errors.New("busy")})
	got := leftovers.Describe(found)
	if !strings.HasPrefix(got, "nftables table ip kube-proxy, ipset 1, ipset 2, ") ||
		!strings.HasSuffix(got, ", ipset 20, 3 more of these, device kube-ipvs0 (note) (stays: busy)") {
		t.Error(got)
	}
	if got := leftovers.Describe(nil); got != "" {
		t.Errorf("%q of nothing", got)
	}
}
