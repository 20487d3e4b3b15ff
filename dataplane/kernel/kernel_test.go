package kernel_test

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"

	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// node is an empty namespace and a connection to it.
type node struct {
	*lab.Namespace
	*kernel.Conn
	t testing.TB
}

func newNode(t testing.TB) node { return newNodeWith(t, kernel.Options{}) }

func newNodeWith(t testing.TB, o kernel.Options) node {
	t.Helper()
	n := node{Namespace: labtest.Namespace(t), t: t}
	n.Conn = n.dial(o)
	return n
}

// dial opens a second connection.
func (n node) dial(o kernel.Options) (c *kernel.Conn) {
	n.t.Helper()
	err := n.Do(func() (err error) {
		c, err = kernel.Dial(o)
		return err
	})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			n.t.Errorf("close: %v", err)
		}
	})
	return c
}

// run runs a program in the namespace and returns what it printed.
func (n node) run(program string, args ...string) (out string) {
	n.t.Helper()
	labtest.Tools(n.t, program)
	err := n.Do(func() error {
		b, err := exec.Command(program, args...).CombinedOutput()
		out = string(b)
		return err
	})
	if err != nil {
		n.t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return out
}

// apply applies ops, which must succeed.
func (n node) apply(ops ...rules.Op) []uint64 {
	n.t.Helper()
	handles, err := n.Apply(ops)
	if err != nil {
		n.t.Fatalf("apply: %v", err)
	}
	return handles
}

// marks returns the names of a chain's rules as mark makes them, and their handles.
func (n node) marks(id rules.ChainID) (marks []int, handles []uint64) {
	n.t.Helper()
	chain, err := n.ListChain(id)
	if err != nil {
		n.t.Fatal(err)
	}
	for _, r := range chain.Rules {
		marks = append(marks, markOf(r.Exprs))
		handles = append(handles, r.Handle)
	}
	return marks, handles
}

func (n node) wantMarks(id rules.ChainID, want ...int) {
	n.t.Helper()
	if got, _ := n.marks(id); !slices.Equal(got, want) {
		n.t.Errorf("%v has the rules %v, want %v", id, got, want)
	}
}

func chainID(family model.Family, table, name string) rules.ChainID {
	return rules.ChainID{Table: rules.Table{Family: family, Name: table}, Name: name}
}

var (
	web  = chainID(model.IPv4, "nat", "WEB")
	web6 = chainID(model.IPv6, "nat", "WEB")
)

// on is an operation on a chain as a whole.
func on(v rules.Verb, id rules.ChainID) rules.Op {
	return rules.Op{Verb: v, Place: rules.Place{Owner: "default/web", Chain: id, Index: -1}}
}

// made makes chains, and their tables.
func made(ids ...rules.ChainID) (ops []rules.Op) {
	for _, id := range ids {
		ops = append(ops, on(rules.AddTable, id), on(rules.AddChain, id))
	}
	return ops
}

// put is an operation that makes a rule.
func put(v rules.Verb, id rules.ChainID, exprs []byte) rules.Op {
	return rules.Op{Verb: v, Place: rules.Place{Owner: "default/web", Chain: id}, Exprs: exprs}
}

func at(op rules.Op, handle uint64) rules.Op {
	op.Handle = handle
	return op
}

func encoded(exprs ...expr.Any) []byte {
	b, err := rules.Encode(model.IPv4, exprs)
	if err != nil {
		panic(err)
	}
	return b
}

// mark is a rule that can be told from others: it tests the packet mark.
func mark(n int) []byte {
	return encoded(
		&expr.Meta{Key: expr.MetaKeyMARK, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{0xaa, 0xbb, byte(n >> 8), byte(n)}},
	)
}

// markOf is the reverse of mark; -1 for rules that mark has not made.
func markOf(exprs []byte) int {
	i := bytes.Index(exprs, []byte{0xaa, 0xbb})
	if i < 0 {
		return -1
	}
	return int(exprs[i+2])<<8 | int(exprs[i+3])
}

func match(name string) expr.Any {
	info := xt.Unknown(make([]byte, 4))
	return &expr.Match{Name: name, Info: &info}
}

func jump(chain string) []byte {
	return encoded(&expr.Verdict{Kind: expr.VerdictJump, Chain: chain})
}

// refused returns err as *kernel.Refused.
func refused(t testing.TB, err error) *kernel.Refused {
	t.Helper()
	var r *kernel.Refused
	if !errors.As(err, &r) {
		t.Fatalf("error %v, want *kernel.Refused", err)
	}
	return r
}

func wantLines(t testing.TB, err error, want ...string) {
	t.Helper()
	if got := err.Error(); got != strings.Join(want, "\n") {
		t.Errorf("error\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func chainName(i int) string { return fmt.Sprintf("CHAIN-%d", i) }

func tcpMatch() []byte {
	return encoded(&expr.Match{Name: "tcp", Info: &xt.Tcp{DstPorts: [2]uint16{80, 80}, SrcPorts: [2]uint16{0, 65535}}})
}

// comment is a rule's comment, as iptables-nft writes it.
func comment(s string) expr.Any {
	b := make(xt.Unknown, 256)
	copy(b, s)
	return &expr.Match{Name: "comment", Info: &b}
}

// withoutTimes drops the lines in which iptables-nft-save says when it ran.
func withoutTimes(s string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(s, "\n"), func(l string) bool { return strings.HasPrefix(l, "# ") }), "\n")
}
