package kernel_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
)

func TestEveryRefusedObjectIsNamedAndTheNextCallIsClean(t *testing.T) {
	n := newNode(t)
	n.apply(made(web, web6)...)
	bad := put(rules.Append, web6, jump("NOWHERE"))
	bad.Place.Owner, bad.Place.Index = "default/api", 2
	_, err := n.Apply([]rules.Op{
		put(rules.Append, web, mark(1)),
		put(rules.Append, web, encoded(match("nonesuch"))),
		bad,
		put(rules.Append, web, mark(2)),
		at(on(rules.Delete, web), 4711),
		put(rules.Append, web, mark(3)),
	})
	wantLines(t, err,
		"default/web: ip nat WEB rule 1: append: the kernel lacks xt_nonesuch (no such file or directory)",
		"default/api: ip6 nat WEB rule 3: append: chain NOWHERE, to which it jumps, does not exist (no such file or directory)",
		"default/web: ip nat WEB: delete: the rule with handle 4711 does not exist (no such file or directory)")
	if r := refused(t, err); r.Incomplete || r.Rest || r.Objects[1].Place != bad.Place {
		t.Errorf("%+v", r)
	}
	if _, err := n.Generation(); err != nil {
		t.Errorf("the following call: %v", err)
	}
	n.apply(put(rules.Append, web, mark(1)))
	n.wantMarks(web, 1)
}

func TestLastOperationRefused(t *testing.T) {
	n := newNode(t)
	n.apply(made(web)...)
	_, err := n.Apply([]rules.Op{put(rules.Append, web, mark(1)), put(rules.Append, web, jump("NOWHERE"))})
	if r := refused(t, err); len(r.Objects) != 1 || r.Objects[0].Verb != rules.Append {
		t.Errorf("%+v, want the last operation alone", r)
	}
	n.wantMarks(web)
}

func TestReasonIsInWords(t *testing.T) {
	hooked := func(name string, h rules.Hook) rules.Op {
		op := on(rules.AddChain, chainID(model.IPv4, "nat", name))
		op.Hook = &h
		return op
	}
	noTable := chainID(model.IPv4, "absent", "WEB")
	tests := map[string]struct {
		op   rules.Op
		want string
	}{
		"unknown match among others": {
			put(rules.Append, web, append(mark(1), encoded(comment("x"), match("nonesuch"), &expr.Counter{})...)),
			"default/web: ip nat WEB rule 1: append: the kernel lacks xt_nonesuch",
		},
		"unknown target": {
			put(rules.Append, web, encoded(&expr.Target{Name: "NONESUCH", Info: match("").(*expr.Match).Info})),
			"default/web: ip nat WEB rule 1: append: the kernel lacks xt_NONESUCH",
		},
		"match that does not accept the rule": {
			put(rules.Append, web, tcpMatch()),
			"default/web: ip nat WEB rule 1: append: expression 1 (match tcp) is not accepted",
		},
		"unknown set": {
			put(rules.Append, web, encoded(&expr.Meta{Key: expr.MetaKeyMARK, Register: 1}, &expr.Lookup{SourceRegister: 1, SetName: "nonesuch"})),
			"default/web: ip nat WEB rule 1: append: set nonesuch does not exist",
		},
		"loop": {
			put(rules.Append, web, jump("WEB")),
			"default/web: ip nat WEB rule 1: append: jumps in a circle, or too deep",
		},
		"jump to a base chain": {
			put(rules.Append, web, jump("INPUT")),
			"default/web: ip nat WEB rule 1: append: chain INPUT, to which it jumps, is a base chain",
		},
		"rule in an absent chain": {
			put(rules.Append, chainID(model.IPv4, "nat", "ABSENT"), mark(1)),
			"default/web: ip nat ABSENT rule 1: append: the chain does not exist",
		},
		"flush of an absent chain": {
			on(rules.Flush, chainID(model.IPv4, "nat", "ABSENT")),
			"default/web: ip nat ABSENT: flush: the chain does not exist",
		},
		"absent chain deleted": {
			on(rules.DeleteChain, chainID(model.IPv4, "nat", "ABSENT")),
			"default/web: ip nat ABSENT: delete chain: the chain does not exist",
		},
		"chain in an absent table": {
			on(rules.AddChain, noTable),
			"default/web: ip absent WEB: add chain: the table does not exist",
		},
		"rule beside an absent one": {
			at(put(rules.InsertAfter, web, mark(1)), 4711),
			"default/web: ip nat WEB rule 1: insert after: the rule with handle 4711 does not exist",
		},
		"absent rule replaced": {
			at(put(rules.Replace, web, mark(1)), 4711),
			"default/web: ip nat WEB rule 1: replace: the rule with handle 4711 does not exist",
		},
		"base chain of another type": {
			hooked("INPUT", rules.Hook{Type: "filter", Number: unix.NF_INET_LOCAL_IN, Priority: 100}),
			"default/web: ip nat INPUT: add chain: the chain exists with another type, hook or priority, or its type does not go with them",
		},
		"base chain of another priority": {
			hooked("INPUT", rules.Hook{Type: "nat", Number: unix.NF_INET_LOCAL_IN, Priority: 99}),
			"default/web: ip nat INPUT: add chain: the chain exists with another type, hook or priority, or its type does not go with them",
		},
		"chain that became a base chain": {
			hooked("WEB", rules.Hook{Type: "nat", Number: unix.NF_INET_LOCAL_IN}),
			"default/web: ip nat WEB: add chain: the chain exists with another type, hook or priority, or its type does not go with them",
		},
		"unknown type of chain": {
			hooked("BASE", rules.Hook{Type: "nonesuch"}),
			"default/web: ip nat BASE: add chain: the kernel lacks nft_chain_nonesuch",
		},
		"unknown verb": {
			on(rules.Verb(99), web),
			"default/web: ip nat WEB: verb 99: no such verb",
		},
	}
	n := newNode(t)
	n.apply(made(web)...)
	input := hooked("INPUT", rules.Hook{Type: "nat", Number: unix.NF_INET_LOCAL_IN, Priority: 100})
	n.apply(input, put(rules.Append, input.Place.Chain, jump("WEB")))
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := n.Apply([]rules.Op{test.op})
			if err == nil {
				t.Fatalf("applied, want %s", test.want)
			}
			// Kernels differ in the number.
			if got, _, _ := strings.Cut(err.Error(), " ("+refused(t, err).Objects[0].Errno.Error()); got != test.want {
				t.Errorf("error\n%v\nwant\n%s", err, test.want)
			}
		})
	}
}

func TestErrnoIsReachable(t *testing.T) {
	n := newNode(t)
	if _, err := n.Apply([]rules.Op{put(rules.Append, web, mark(1))}); !errors.Is(err, unix.ENOENT) {
		t.Errorf("%v, want ENOENT", err)
	}
}

func TestWantOfPrivilegeIsInWords(t *testing.T) {
	n := newNode(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var all [2]unix.CapUserData
	if err := unix.Capget(&header, &all[0]); err != nil {
		t.Fatal(err)
	}
	without := all
	without[0].Effective &^= 1 << unix.CAP_NET_ADMIN
	if err := unix.Capset(&header, &without[0]); err != nil {
		t.Fatal(err)
	}
	_, listing := n.List([]rules.Table{web.Table})
	_, applying := n.Apply(made(web))
	if err := unix.Capset(&header, &all[0]); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{listing, applying} {
		if !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "CAP_NET_ADMIN is missing") {
			t.Errorf("got %v", err)
		}
	}
}

func TestOfATableThatAnotherProgramOwnsNotEveryRefusalIsSpelledOut(t *testing.T) {
	const owner = 2 // NFT_TABLE_F_OWNER (include/uapi/linux/netfilter/nf_tables.h, 6.18)
	n := newNode(t)
	err := n.Do(func() error {
		c, err := nftables.New(nftables.AsLasting())
		if err != nil {
			return err
		}
		t.Cleanup(func() { c.CloseLasting() })
		c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: web.Table.Name, Flags: owner})
		return c.Flush()
	})
	if err != nil {
		t.Fatal(err)
	}
	ops := []rules.Op{on(rules.AddChain, web)}
	for range 20 {
		ops = append(ops, put(rules.Append, web, mark(1)))
	}
	_, err = n.Apply(ops)
	const owned = "another program owns the table, and it alone may change it (operation not permitted)"
	want := []string{"default/web: ip nat WEB: add chain: " + owned}
	for range 9 {
		want = append(want, "default/web: ip nat WEB rule 1: append: "+owned)
	}
	wantLines(t, err, append(want, "and 11 others")...)
	if got := len(refused(t, err).Objects); got != len(ops) {
		t.Errorf("%d objects, want %d", got, len(ops))
	}
}
