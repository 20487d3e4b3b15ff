package rules_test

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/phrase"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/nlproxy/nlproxy/dataplane/rules/rulestest"
	"github.com/nlproxy/nlproxy/dataplane/xt"
)

type exprs = []expr.Any

// everything is every phrase and extension, one rule each, and the layer-4
// protocol that the kernel must be told.
func everything(f model.Family) []rules.Rule {
	prefixes := map[model.Family][]string{
		model.IPv4: {"0.0.0.0/0", "10.0.0.0/8", "10.96.0.0/12", "10.96.3.10/32"},
		model.IPv6: {"::/0", "fd00::/8", "fd00:96::/108", "fd00:96::3:10/128"},
	}[f]
	var list []rules.Rule
	add := func(proto model.Protocol, e ...exprs) {
		list = append(list, rules.Rule{Exprs: slices.Concat(e...), Proto: uint8(proto)})
	}
	for _, text := range prefixes {
		p := netip.MustParsePrefix(text)
		add(0, phrase.Source(p), phrase.NotDestination(p), phrase.Counter())
		add(0, phrase.Destination(p), phrase.NotSource(p), phrase.Counter(), phrase.Return())
	}
	for _, name := range []string{"eth0", "cali+", "+"} {
		add(0, phrase.InInterface(name), phrase.Counter())
		add(0, phrase.NotInInterface(name), phrase.Counter())
	}
	add(model.TCP, phrase.Protocol(model.TCP), phrase.DestinationPort(80), xt.TCP(), phrase.Counter(), phrase.Accept())
	add(model.UDP, phrase.Protocol(model.UDP), xt.UDP(), phrase.DestinationPort(53), phrase.Counter(), phrase.Drop())
	add(model.SCTP, phrase.Protocol(model.SCTP), xt.SCTP(), xt.SCTPDestinationPort(2905), phrase.Counter())
	add(0, phrase.Mark(0x4000), phrase.NotMark(0x8000), phrase.Counter(), phrase.Jump(rulestest.Target))
	add(0, xt.Comment("a"), xt.Comment(strings.Repeat("é", 200)), xt.Statistic(3), phrase.Counter())
	add(0, xt.RecentCheck("b", 10800), xt.RecentSet("b"), phrase.Counter())
	add(0, xt.DestinationLocal(), xt.SourceLocal(), phrase.Counter())
	add(0, xt.State(xt.New), xt.NotState(xt.Related, xt.Established, xt.DNATed), phrase.Counter())
	add(0, xt.NFAcct(rulestest.Counter), phrase.Counter())
	return list
}

// targets is every target, by the chain in which it may be.
func targets(f model.Family) map[string]rules.Rule {
	to := map[model.Family]string{model.IPv4: "10.244.1.5:8080", model.IPv6: "[fd00:244::5]:8080"}[f]
	one := func(proto model.Protocol, e ...exprs) rules.Rule {
		return rules.Rule{Exprs: slices.Concat(e...), Proto: uint8(proto)}
	}
	return map[string]rules.Rule{
		"or":         one(0, phrase.Counter(), xt.MarkOr(0x4000)),
		"xor":        one(0, phrase.Counter(), xt.MarkXor(0x4000)),
		"dnat":       one(model.TCP, phrase.Protocol(model.TCP), phrase.Counter(), xt.DNAT(netip.MustParseAddrPort(to))),
		"masquerade": one(0, phrase.Counter(), xt.Masquerade(f)),
		"reject":     one(0, phrase.Counter(), xt.Reject(f)),
		"nf-nat":     one(0, nativeNAT(f)),
		"nf-masq":    one(0, exprs{&expr.Masq{FullyRandom: true}}),
		"nf-others":  one(0, others()),
	}
}

// nativeNAT leaves out the ends of its ranges.
func nativeNAT(f model.Family) exprs {
	const address, port = 1, 2
	return exprs{
		&expr.Immediate{Register: address, Data: make([]byte, f.Bits()/8)},
		&expr.Immediate{Register: port, Data: []byte{0x1f, 0x90}},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(f), RegAddrMin: address, RegProtoMin: port},
	}
}

// others use the second numbers of registers.
func others() exprs {
	return exprs{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: unix.NFT_REG32_00},
		&expr.Bitwise{SourceRegister: unix.NFT_REG32_00, DestRegister: unix.NFT_REG32_04, Len: 4, Mask: []byte{1, 1, 1, 1}, Xor: []byte{2, 2, 2, 2}},
		&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: unix.NFT_REG32_04},
		&expr.Numgen{Register: unix.NFT_REG32_01, Modulus: 5, Type: unix.NFT_NG_RANDOM},
		&expr.Fib{Register: unix.NFT_REG32_08, FlagDADDR: true, ResultADDRTYPE: true},
		&expr.Ct{Register: unix.NFT_REG32_12, Key: expr.CtKeySTATE},
		&expr.Verdict{Kind: expr.VerdictGoto, Chain: rulestest.Target},
	}
}

// natives are expressions of nf_tables that need a set, or are no phrase.
func natives() exprs {
	return exprs{
		&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: 1},
		&expr.Payload{OperationType: expr.PayloadWrite, SourceRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 12, Len: 4, CsumType: expr.CsumTypeInet, CsumOffset: 10},
		&expr.Immediate{Register: 1, Data: []byte{1, 2, 3, 4}},
		&expr.Lookup{SourceRegister: 1, DestRegister: 0, IsDestRegSet: true, SetName: "services"},
		&expr.Numgen{Register: 9, Modulus: 5, Type: unix.NFT_NG_RANDOM},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1, RegProtoMin: 9},
		&expr.Masq{FullyRandom: true},
		&expr.Fib{Register: 1, FlagDADDR: true, ResultADDRTYPE: true},
		&expr.Ct{Register: 1, Key: expr.CtKeySTATE},
		&expr.Dynset{SrcRegKey: 1, SrcRegData: 9, SetName: "affinity", Operation: uint32(unix.NFT_DYNSET_OP_UPDATE)},
		&expr.Verdict{Kind: expr.VerdictGoto, Chain: "x"},
	}
}

func TestEncodeGivesTheBytesOfMarshal(t *testing.T) {
	for _, f := range model.Families {
		list := append(everything(f), rules.Rule{Exprs: natives()})
		for _, r := range targets(f) {
			list = append(list, r)
		}
		for _, r := range list {
			got, err := rules.Encode(f, r.Exprs)
			if err != nil {
				t.Fatal(err)
			}
			if want := marshal(t, f, r.Exprs); !bytes.Equal(want, got) {
				t.Errorf("want\n%sgot\n%s", hex.Dump(want), hex.Dump(got))
			}
		}
	}
}

func marshal(t testing.TB, f model.Family, list exprs) []byte {
	t.Helper()
	var attrs []netlink.Attribute
	for _, e := range list {
		data, err := expr.Marshal(byte(f), e)
		if err != nil {
			t.Fatal(err)
		}
		attrs = append(attrs, netlink.Attribute{Type: unix.NFTA_LIST_ELEM | unix.NLA_F_NESTED, Data: data})
	}
	b, err := netlink.MarshalAttributes(attrs)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDecodeReadsWhatEncodeWrote(t *testing.T) {
	for _, f := range model.Families {
		for _, r := range everything(f) {
			if diff := cmp.Diff(r.Exprs, decoded(t, f, encoded(t, f, r.Exprs))); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		}
	}
	list := natives()
	if diff := cmp.Diff(list, decoded(t, model.IPv4, encoded(t, model.IPv4, list))); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestDecodeKeepsWhatItDoesNotKnow(t *testing.T) {
	shift := element("bitwise", attribute(6, 0, 0, 0, 1), attribute(7, 8, 0, 1, 0, 0, 0, 0, 4))
	counting := encoded(t, model.IPv4, exprs{&expr.Dynset{SetName: "x", Exprs: exprs{&expr.Counter{}}}})
	for _, b := range [][]byte{element("osf", attribute(1, 0, 0, 0, 1)), element("unheard_of"), shift, counting} {
		list := decoded(t, model.IPv4, b)
		if _, ok := list[0].(*rules.Opaque); !ok {
			t.Errorf("%T, want an Opaque", list[0])
		}
		if again := encoded(t, model.IPv4, list); !bytes.Equal(canonical(t, b), canonical(t, again)) {
			t.Errorf("%x became %x", b, again)
		}
	}
}

func encoded(t testing.TB, f model.Family, list exprs) []byte {
	t.Helper()
	b, err := rules.Encode(f, list)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decoded(t testing.TB, f model.Family, b []byte) exprs {
	t.Helper()
	list, err := rules.Decode(f, b)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// attribute and element build bytes that no encoder would.
func attribute(kind byte, data ...byte) []byte {
	b, err := netlink.MarshalAttributes([]netlink.Attribute{{Type: uint16(kind), Data: data}})
	if err != nil {
		panic(err)
	}
	return b
}

func element(name string, attributes ...[]byte) []byte {
	data := attribute(unix.NFTA_EXPR_DATA, slices.Concat(attributes...)...)
	return attribute(unix.NFTA_LIST_ELEM, append(attribute(unix.NFTA_EXPR_NAME, append([]byte(name), 0)...), data...)...)
}

func TestEncodeRefusesWhatNetlinkCannotHold(t *testing.T) {
	for _, list := range []exprs{
		{&expr.Cmp{Data: make([]byte, 1<<16)}},
		{&expr.Verdict{Kind: expr.VerdictJump, Chain: strings.Repeat("x", 1<<16)}},
		{&rules.Opaque{Name: "x", Data: make([]byte, 1<<16)}},
	} {
		if b, err := rules.Encode(model.IPv4, list); err == nil {
			t.Errorf("%T: no error, %d bytes", list[0], len(b))
		}
	}
}

func TestDecodeRefusesBrokenBytes(t *testing.T) {
	whole := encoded(t, model.IPv4, phrase.Jump("KUBE-SERVICES"))
	for n := 1; n < len(whole); n++ {
		if list, err := rules.Decode(model.IPv4, whole[:n]); err == nil {
			t.Errorf("%d of %d bytes: no error, %v", n, len(whole), list)
		}
	}
	if _, err := rules.Decode(model.IPv4, element("immediate", attribute(1, 0, 0, 0, 0), attribute(2, attribute(2, attribute(1, 1)...)...))); err == nil {
		t.Error("verdict of one byte: no error")
	}
}

func FuzzDecode(f *testing.F) {
	for _, family := range model.Families {
		for _, r := range append(everything(family), rules.Rule{Exprs: natives()}) {
			f.Add(uint8(family), encoded(f, family, r.Exprs))
		}
		for _, r := range targets(family) {
			f.Add(uint8(family), encoded(f, family, r.Exprs))
		}
	}
	f.Fuzz(func(t *testing.T, family uint8, b []byte) {
		list, err := rules.Decode(model.Family(family), b)
		if err != nil {
			return
		}
		for _, e := range list {
			switch e := e.(type) {
			case nil:
				t.Error("an expression that is nil")
			case *expr.Match:
				_, _ = xt.ParseMatch(model.Family(family), e)
			case *expr.Target:
				_, _ = xt.ParseTarget(model.Family(family), e)
			}
		}
	})
}

// typical is a rule of KUBE-SERVICES, of 9 expressions with the comment.
func typical() exprs {
	return slices.Concat(
		phrase.Destination(netip.MustParsePrefix("10.96.3.10/32")),
		phrase.Protocol(model.TCP),
		xt.Comment("default/web:http cluster IP"),
		phrase.DestinationPort(80),
		phrase.Counter(),
		phrase.Jump("KUBE-SVC-CDGGSHYLG3RE2FKL"))
}

func BenchmarkEncode(b *testing.B) {
	list := typical()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rules.Encode(model.IPv4, list); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMarshal(b *testing.B) {
	list := typical()
	b.ReportAllocs()
	for b.Loop() {
		marshal(b, model.IPv4, list)
	}
}
