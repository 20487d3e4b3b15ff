package xt_test

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/nftables/expr"
	nfxt "github.com/google/nftables/xt"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/xt"
)

func TestParseReadsWhatConstructorsSay(t *testing.T) {
	everyBit := [16]byte(bytes.Repeat([]byte{0xff}, 16))
	v4, v6 := netip.MustParseAddrPort("10.244.1.5:8080"), netip.MustParseAddrPort("[fd00:244::5]:8080")
	for _, c := range []struct {
		family model.Family
		exprs  exprs
		want   xt.Info
	}{
		{model.IPv4, xt.Comment("default/web:http"), xt.CommentInfo{Text: "default/web:http"}},
		{model.IPv4, xt.TCP(), xt.TCPInfo{Source: xt.AnyPort, Destination: xt.AnyPort}},
		{model.IPv6, xt.UDP(), xt.UDPInfo{Source: xt.AnyPort, Destination: xt.AnyPort}},
		{model.IPv4, xt.SCTP(), xt.SCTPInfo{}},
		{model.IPv4, xt.SCTPDestinationPort(9), xt.SCTPInfo{Destination: xt.PortRange{Low: 9, High: 9}, Flags: xt.SCTPDestination}},
		{model.IPv4, xt.Statistic(4), xt.StatisticInfo{Probability: 1 << 29}},
		{model.IPv4, xt.RecentCheck("a", 60), xt.RecentInfo{Seconds: 60, Flags: xt.RecentFlagCheck | xt.RecentFlagReap, Name: "a", Mask: everyBit}},
		{model.IPv6, xt.RecentSet("b"), xt.RecentInfo{Flags: xt.RecentFlagSet, Name: "b", Mask: everyBit}},
		{model.IPv4, xt.DestinationLocal(), xt.AddrTypeInfo{Destination: xt.AddrLocal}},
		{model.IPv4, xt.SourceLocal(), xt.AddrTypeInfo{Source: xt.AddrLocal}},
		{model.IPv4, xt.State(xt.New, xt.Invalid), xt.ConntrackInfo{States: xt.New | xt.Invalid}},
		{model.IPv4, xt.NotState(xt.DNATed), xt.ConntrackInfo{States: xt.DNATed, Invert: true}},
		{model.IPv4, xt.NFAcct("c"), xt.NFAcctInfo{Name: "c"}},
		{model.IPv4, xt.MarkOr(0x4000), xt.MarkInfo{Mark: 0x4000, Mask: 0x4000}},
		{model.IPv4, xt.MarkXor(0x4000), xt.MarkInfo{Mark: 0x4000}},
		{model.IPv4, xt.DNAT(v4), xt.DNATInfo{Flags: xt.NATAddress | xt.NATPort, Min: v4, Max: v4}},
		{model.IPv6, xt.DNAT(v6), xt.DNATInfo{Flags: xt.NATAddress | xt.NATPort, Min: v6, Max: v6}},
		{model.IPv4, xt.Masquerade(model.IPv4), xt.MasqueradeInfo{Family: model.IPv4, Flags: xt.NATRandomFully}},
		{model.IPv6, xt.Masquerade(model.IPv6), xt.MasqueradeInfo{Family: model.IPv6, Flags: xt.NATRandomFully}},
		{model.IPv4, xt.Reject(model.IPv4), xt.RejectInfo{With: xt.PortUnreachable4}},
		{model.IPv6, xt.Reject(model.IPv6), xt.RejectInfo{With: xt.PortUnreachable6}},
	} {
		got, err := parse(c.family, c.exprs[0])
		if err != nil {
			t.Errorf("%#v: %v", c.want, err)
			continue
		}
		if diff := cmp.Diff(c.want, got, cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
}

func parse(f model.Family, e expr.Any) (xt.Info, error) {
	if m, ok := e.(*expr.Match); ok {
		return xt.ParseMatch(f, m)
	}
	return xt.ParseTarget(f, e.(*expr.Target))
}

func TestParseRefusesWhatItCannotRead(t *testing.T) {
	raw := func(n int) *nfxt.Unknown { b := make(nfxt.Unknown, n); return &b }
	text, nth := nfxt.Comment(""), *raw(24)
	nth[0], nth[1] = 1, 1 // XT_STATISTIC_MODE_NTH is 1; 257 is no mode either
	for _, c := range []struct {
		name    string
		exprs   expr.Any
		unknown bool
	}{
		{"other match", &expr.Match{Name: "mac", Info: raw(8)}, true},
		{"other revision", &expr.Match{Name: "conntrack", Rev: 2, Info: raw(168)}, true},
		{"other target", &expr.Target{Name: "LOG", Info: raw(40)}, true},
		{"conntrack without a state", &expr.Match{Name: "conntrack", Rev: 3, Info: raw(168)}, true},
		{"nth statistic", &expr.Match{Name: "statistic", Info: &nth}, true},
		{"short", &expr.Match{Name: "comment", Info: raw(255)}, false},
		{"short for its family", &expr.Target{Name: "MASQUERADE", Info: raw(24)}, false},
		{"not raw", &expr.Match{Name: "comment", Info: &text}, false},
		{"no payload", &expr.Match{Name: "comment"}, false},
	} {
		i, err := parse(model.IPv6, c.exprs)
		if err == nil || errors.Is(err, xt.ErrUnknown) != c.unknown {
			t.Errorf("%s: %v, %v; want an error, unknown %v", c.name, i, err, c.unknown)
		}
	}
}

func TestCommentIsCutBetweenCharacters(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{strings.Repeat("a", 300), strings.Repeat("a", 255)},
		{strings.Repeat("é", 150), strings.Repeat("é", 127)},
		{strings.Repeat("a", 253) + "€€", strings.Repeat("a", 253)},
		{strings.Repeat("a", 252) + "€€", strings.Repeat("a", 252) + "€"},
		{strings.Repeat("a", 255), strings.Repeat("a", 255)},
	} {
		got, err := parse(model.IPv4, xt.Comment(c.text)[0])
		if err != nil {
			t.Fatal(err)
		}
		if got := got.(xt.CommentInfo).Text; got != c.want || !utf8.ValidString(got) {
			t.Errorf("%d bytes became %q, want %q", len(c.text), got, c.want)
		}
	}
}

func TestCommentHoldsTheLongestNames(t *testing.T) {
	label, port := strings.Repeat("n", 63), strings.Repeat("p", 15)
	text := "masquerade traffic for " + label + "/" + label + ":" + port + " external destinations"
	got, err := parse(model.IPv4, xt.Comment(text)[0])
	if err != nil || got != (xt.CommentInfo{Text: text}) {
		t.Errorf("%v, %v; want all of it", got, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range append(matchCases(), targetCases()...) {
		for _, e := range c.Exprs {
			switch e := e.(type) {
			case *expr.Match:
				f.Add(uint8(c.Family), false, e.Name, e.Rev, []byte(*e.Info.(*nfxt.Unknown)))
			case *expr.Target:
				f.Add(uint8(c.Family), true, e.Name, e.Rev, []byte(*e.Info.(*nfxt.Unknown)))
			}
		}
	}
	f.Fuzz(func(t *testing.T, family uint8, target bool, name string, revision uint32, info []byte) {
		raw := nfxt.Unknown(info)
		var i xt.Info
		var err error
		if target {
			i, err = xt.ParseTarget(model.Family(family), &expr.Target{Name: name, Rev: revision, Info: &raw})
		} else {
			i, err = xt.ParseMatch(model.Family(family), &expr.Match{Name: name, Rev: revision, Info: &raw})
		}
		if (i == nil) == (err == nil) {
			t.Errorf("%v, %v: want either", i, err)
		}
	})
}
