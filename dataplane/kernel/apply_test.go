package kernel_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestVerbsPutRulesWhereTheySay(t *testing.T) {
	n := newNode(t)
	n.apply(made(web)...)
	first := n.apply(put(rules.Append, web, mark(20)), put(rules.Append, web, mark(30)), put(rules.Prepend, web, mark(10)))
	n.wantMarks(web, 10, 20, 30)
	n.apply(
		at(put(rules.InsertBefore, web, mark(15)), first[0]),
		at(put(rules.InsertAfter, web, mark(25)), first[0]),
		at(put(rules.Replace, web, mark(11)), first[2]),
		put(rules.Append, web, mark(40)),
	)
	n.wantMarks(web, 11, 15, 20, 25, 30, 40)
	n.apply(at(on(rules.Delete, web), first[1]))
	n.wantMarks(web, 11, 15, 20, 25, 40)
	n.apply(on(rules.Flush, web), put(rules.Append, web, mark(1)))
	n.wantMarks(web, 1)
	n.apply(on(rules.Flush, web), on(rules.DeleteChain, web))
	if _, err := n.ListChain(web); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("list a deleted chain: %v, want fs.ErrNotExist", err)
	}
}

func TestMakingWhatExistsChangesNothing(t *testing.T) {
	n := newNode(t)
	n.apply(made(web)...)
	n.apply(put(rules.Append, web, mark(1)))
	n.apply(made(web)...)
	n.wantMarks(web, 1)
}

func TestBothFamiliesAreOneTransaction(t *testing.T) {
	n := newNode(t)
	before, err := n.Generation()
	if err != nil {
		t.Fatal(err)
	}
	n.apply(append(made(web, web6), put(rules.Append, web, mark(4)), put(rules.Append, web6, mark(6)))...)
	after, err := n.Generation()
	if err != nil {
		t.Fatal(err)
	}
	if after != before+1 {
		t.Errorf("generation went from %d to %d, want one step", before, after)
	}
	n.wantMarks(web, 4)
	n.wantMarks(web6, 6)
}

func TestBaseChainHasItsHook(t *testing.T) {
	n := newNode(t)
	post := chainID(model.IPv6, "nat", "POSTROUTING")
	op := on(rules.AddChain, post)
	op.Hook = &rules.Hook{Type: "nat", Number: unix.NF_INET_POST_ROUTING, Priority: 100}
	n.apply(on(rules.AddTable, post), op)
	chain, err := n.ListChain(post)
	if err != nil {
		t.Fatal(err)
	}
	if chain.Hook == nil || *chain.Hook != *op.Hook {
		t.Errorf("hook %+v, want %+v", chain.Hook, *op.Hook)
	}
	if out := n.run("nft", "list", "ruleset"); !strings.Contains(out, "type nat hook postrouting priority srcnat; policy accept;") {
		t.Errorf("nft shows\n%s", out)
	}
}

func TestPolicyOfAnExistingBaseChainStays(t *testing.T) {
	n := newNode(t)
	n.run("iptables-nft", "-P", "INPUT", "DROP")
	op := on(rules.AddChain, chainID(model.IPv4, "filter", "INPUT"))
	op.Hook = &rules.Hook{Type: "filter", Number: unix.NF_INET_LOCAL_IN}
	n.apply(op)
	if out := n.run("iptables-nft", "-S", "INPUT"); !strings.Contains(out, "-P INPUT DROP") {
		t.Errorf("iptables-nft shows\n%s", out)
	}
}

func TestRuleIsToldItsProtocol(t *testing.T) {
	n := newNode(t)
	n.apply(made(web)...)
	op := put(rules.Append, web, encoded(match("tcp")))
	op.Exprs = tcpMatch()
	if _, err := n.Apply([]rules.Op{op}); !errors.Is(err, unix.EINVAL) {
		t.Fatalf("match tcp without a protocol: %v, want EINVAL", err)
	}
	op.Proto = unix.IPPROTO_TCP
	n.apply(op)
	if chain, err := n.ListChain(web); err != nil || len(chain.Rules) != 1 {
		t.Errorf("listed %v, %v; want one rule", chain, err)
	}
}

func TestOneBadOperationChangesNothing(t *testing.T) {
	n := newNode(t)
	n.apply(made(web)...)
	n.apply(put(rules.Append, web, mark(1)))
	generation, err := n.Generation()
	if err != nil {
		t.Fatal(err)
	}
	ops := append(made(web6), put(rules.Append, web, mark(2)), on(rules.Flush, web), put(rules.Append, web, jump("NOWHERE")))
	if handles, err := n.Apply(ops); err == nil || handles != nil {
		t.Fatalf("applied: %v, %v", handles, err)
	}
	n.wantMarks(web, 1)
	if after, err := n.Generation(); err != nil || after != generation {
		t.Errorf("generation %d, %v; want still %d", after, err, generation)
	}
	if _, err := n.ListChain(web6); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("chain of the other family: %v, want fs.ErrNotExist", err)
	}
}

func TestHandlesAreThoseListed(t *testing.T) {
	n := newNode(t)
	n.run("iptables-nft", "-t", "nat", "-N", "WEB")
	n.run("iptables-nft", "-t", "nat", "-A", "WEB", "-j", "RETURN")
	a := n.apply(put(rules.Append, web, mark(1)), on(rules.AddChain, chainID(model.IPv4, "nat", "OTHER")), put(rules.Prepend, web, mark(2)))
	n.run("iptables-nft", "-t", "nat", "-I", "WEB", "2", "-j", "RETURN")
	b := n.apply(at(put(rules.Replace, web, mark(3)), a[0]), at(put(rules.InsertBefore, web, mark(4)), a[2]))
	if a[1] != 0 {
		t.Errorf("handle %d for a chain, want 0", a[1])
	}
	marks, handles := n.marks(web)
	if want := []int{4, 2, -1, -1, 3}; !slices.Equal(marks, want) {
		t.Fatalf("rules %v, want %v", marks, want)
	}
	for i, want := range map[int]uint64{0: b[1], 1: a[2], 4: b[0]} {
		if handles[i] != want || want == 0 {
			t.Errorf("rule %d has handle %d, was told as %d", marks[i], handles[i], want)
		}
	}
}

func TestManyRulesHaveUnknownHandles(t *testing.T) {
	n := newNode(t)
	n.apply(made(web)...)
	const many = 20_000
	ops := make([]rules.Op, many)
	want := make([]int, many)
	for i := range ops {
		ops[i], want[i] = put(rules.Append, web, mark(i)), i
	}
	if fit := n.Fit(ops); fit < many {
		labtest.Missing(t, "net.core.wmem_max for %d rules: %d fit", many, fit)
	}
	handles := n.apply(ops...)
	if len(handles) != many || slices.ContainsFunc(handles, func(h uint64) bool { return h != 0 }) {
		t.Errorf("%d handles, some known; want %d zeros", len(handles), many)
	}
	n.wantMarks(web, want...)
}

func TestFitSaysHowMuchOneTransactionHolds(t *testing.T) {
	n := newNode(t)
	n.apply(made(web)...)
	large := encoded(slices.Repeat([]expr.Any{comment("padding")}, 12)...)
	ops := slices.Repeat([]rules.Op{put(rules.Append, web, large)}, 5000)
	fit := n.Fit(ops)
	if fit == len(ops) {
		labtest.Missing(t, "a limit of the send buffer below %d bytes", len(ops)*len(large))
	}
	if _, err := n.Apply(ops); !errors.Is(err, unix.EMSGSIZE) {
		t.Fatalf("more operations than fit: %v, want EMSGSIZE", err)
	}
	n.wantMarks(web)
	n.apply(ops[:fit]...)
}

func TestRuleTooLargeForAnEchoIsCommitted(t *testing.T) {
	n := newNode(t)
	n.apply(made(web)...)
	large := mark(1)
	for len(large) < 8000 {
		large = append(large, encoded(comment(strings.Repeat("x", 255)))...)
	}
	n.apply(put(rules.Append, web, large), put(rules.Append, web, mark(2)))
	n.wantMarks(web, 1, 2)
}

func TestOversizedRuleIsRefusedByName(t *testing.T) {
	n := newNode(t)
	n.apply(made(web)...)
	fits := make([]byte, 65_531)
	large := put(rules.Append, web, append(fits, 0))
	large.Place.Index = 4
	_, err := n.Apply([]rules.Op{put(rules.Append, web, mark(1)), large})
	wantLines(t, err, "default/web: ip nat WEB rule 5: append: "+
		"expressions of 65532 bytes, a rule holds at most 65531 (message too long)")
	n.wantMarks(web)
}

func TestNameThatWouldBeCutShortIsRefused(t *testing.T) {
	n := newNode(t)
	n.apply(made(web)...)
	n.apply(put(rules.Append, web, mark(1)))
	for _, name := range []string{"WEB\x00-OTHER", strings.Repeat("W", 256)} {
		_, err := n.Apply([]rules.Op{on(rules.Flush, chainID(model.IPv4, "nat", name))})
		if r := refused(t, err); r.Objects[0].Errno != unix.ENAMETOOLONG {
			t.Errorf("flush %.20q: %v, want ENAMETOOLONG", name, err)
		}
	}
	n.wantMarks(web, 1)
}

func TestOfSeveralChainsThatMayGoTheOneInUseStays(t *testing.T) {
	n := newNode(t)
	used, free := chainID(model.IPv4, "nat", "USED"), chainID(model.IPv4, "nat", "FREE")
	n.apply(append(made(web, used, free), put(rules.Append, web, jump("USED")))...)
	handles, err := n.Apply([]rules.Op{
		put(rules.Append, web, mark(1)), on(rules.DeleteChain, used), on(rules.DeleteChain, free), put(rules.Append, web, mark(2)),
	})
	wantLines(t, err, "default/web: ip nat USED: delete chain: the chain is in use (device or resource busy)")
	if !refused(t, err).Rest {
		t.Error("Rest is not set")
	}
	marks, listed := n.marks(web)
	if !slices.Equal(marks, []int{-1, 1, 2}) || len(handles) != 4 || listed[1] != handles[0] || listed[2] != handles[3] {
		t.Errorf("rules %v with handles %v, told as %v", marks, listed, handles)
	}
	if _, err := n.ListChain(used); err != nil {
		t.Errorf("chain in use: %v", err)
	}
	if _, err := n.ListChain(free); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("free chain: %v, want fs.ErrNotExist", err)
	}
}

func TestChainGoesWithItsLastReference(t *testing.T) {
	n := newNode(t)
	used := chainID(model.IPv4, "nat", "USED")
	handle := n.apply(append(made(web, used), put(rules.Append, web, jump("USED")))...)[4]
	n.apply(put(rules.Append, used, mark(1)))
	n.apply(at(on(rules.Delete, web), handle), on(rules.Flush, used), on(rules.DeleteChain, used), put(rules.Append, web, mark(2)))
	n.wantMarks(web, 2)
	if _, err := n.ListChain(used); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want fs.ErrNotExist", err)
	}
}

func TestChainInUseThatIsMadeAgainChangesNothing(t *testing.T) {
	n := newNode(t)
	used := chainID(model.IPv4, "nat", "USED")
	n.apply(append(made(web, used), put(rules.Append, web, jump("USED")))...)
	_, err := n.Apply([]rules.Op{put(rules.Append, web, mark(1)), on(rules.DeleteChain, used), on(rules.AddChain, used)})
	if r := refused(t, err); r.Rest || !errors.Is(err, unix.EBUSY) {
		t.Errorf("%+v, want EBUSY and nothing committed", r)
	}
	n.wantMarks(web, -1)
}

func TestForeignRulesStay(t *testing.T) {
	n := newNode(t)
	n.run("iptables-nft", "-t", "nat", "-A", "PREROUTING", "-p", "tcp", "--dport", "81", "-j", "ACCEPT")
	n.run("iptables-nft", "-t", "nat", "-A", "PREROUTING", "-m", "recent", "--name", "x", "--rcheck", "-j", "RETURN")
	n.run("nft", "add table ip6 mine { chain c { type filter hook input priority 0; policy drop; tcp dport 22 accept; }; }")
	before := n.run("nft", "list", "ruleset") + n.run("iptables-nft-save", "-t", "nat")
	pre := chainID(model.IPv4, "nat", "PREROUTING")
	handles := n.apply(append(made(web, web6), put(rules.Prepend, pre, jump("WEB")), put(rules.Append, pre, jump("WEB")))...)
	n.apply(at(on(rules.Delete, pre), handles[4]), at(on(rules.Delete, pre), handles[5]))
	n.apply(on(rules.DeleteChain, web), on(rules.DeleteChain, web6))
	n.run("nft", "delete table ip6 nat")
	if after := n.run("nft", "list", "ruleset") + n.run("iptables-nft-save", "-t", "nat"); withoutTimes(after) != withoutTimes(before) {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

func TestRulesetFlushedMeanwhileIsAClearError(t *testing.T) {
	n := newNode(t)
	n.apply(made(web)...)
	handle := n.apply(put(rules.Append, web, mark(1)))[0]
	n.run("nft", "flush", "ruleset")
	_, err := n.Apply([]rules.Op{at(on(rules.Delete, web), handle), put(rules.Append, web, mark(2)), on(rules.DeleteChain, web)})
	wantLines(t, err,
		"default/web: ip nat WEB: delete: the table does not exist (no such file or directory)",
		"default/web: ip nat WEB rule 1: append: the table does not exist (no such file or directory)",
		"default/web: ip nat WEB: delete chain: the table does not exist (no such file or directory)")
}

func TestNoOperationsAreNoTransaction(t *testing.T) {
	n := newNodeWith(t, kernel.Options{Tap: func([]byte) { t.Error("something was sent") }})
	if handles, err := n.Apply(nil); handles != nil || err != nil {
		t.Errorf("%v, %v; want nothing", handles, err)
	}
}

func TestCallsFromManyGoroutines(t *testing.T) {
	n := newNode(t)
	n.apply(made(web)...)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if handles, err := n.Apply([]rules.Op{put(rules.Append, web, mark(i))}); err != nil || handles[0] == 0 {
				t.Errorf("apply %d: %v, %v", i, handles, err)
			}
			if _, err := n.ListChain(web); err != nil {
				t.Errorf("list: %v", err)
			}
		})
	}
	wg.Wait()
	marks, _ := n.marks(web)
	slices.Sort(marks)
	if !slices.Equal(marks, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("rules %v", marks)
	}
}

func TestClosedConnectionFails(t *testing.T) {
	var c *kernel.Conn
	if err := newNode(t).Do(func() (err error) { c, err = kernel.Dial(kernel.Options{}); return err }); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Apply(made(web)); err == nil {
		t.Error("applied through a closed connection")
	}
	if _, err := c.Generation(); err == nil {
		t.Error("asked through a closed connection")
	}
}
