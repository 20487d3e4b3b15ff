package iptables_test

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"

	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/phrase"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/nlproxy/nlproxy/dataplane/rules/rulestest"
	"github.com/nlproxy/nlproxy/integration/golden"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// counters are the nfnetlink_acct objects that rules of the cases name.
var counters = []string{"ct_state_invalid_dropped_pkts", "localhost_nps_accepted_pkts"}

func TestSavePrintsKubeProxysRulesAsTheToolDoes(t *testing.T) {
	for _, c := range golden.Cases(t) {
		t.Run(c.Name, func(t *testing.T) {
			texts := restorable(c.Want)
			saveLikeTheTool(t, model.IPv4, texts[model.IPv4])
			saveLikeTheTool(t, model.IPv6, texts[model.IPv6])
		})
	}
}

// restorable turns a normalised text, of blocks like "# ip6tables nat" with
// chains without a policy among their rules, into input for iptables-restore.
func restorable(text string) map[model.Family]string {
	texts := map[model.Family]string{}
	for block := range strings.SplitSeq(text, "# ") {
		heading, content, _ := strings.Cut(block, "\n")
		program, table, _ := strings.Cut(heading, " ")
		var chains, appends strings.Builder
		for line := range strings.Lines(content) {
			switch {
			case strings.HasPrefix(line, ":KUBE-"):
				chains.WriteString(strings.TrimSpace(line) + " - [0:0]\n")
			case strings.HasPrefix(line, ":"):
				chains.WriteString(strings.TrimSpace(line) + " ACCEPT [0:0]\n")
			default:
				appends.WriteString(line)
			}
		}
		if table != "" {
			f := map[string]model.Family{"iptables": model.IPv4, "ip6tables": model.IPv6}[program]
			texts[f] += "*" + table + "\n" + chains.String() + appends.String() + "COMMIT\n"
		}
	}
	return texts
}

// otherRules are written in other ways than kube-proxy's.
var otherRules = map[model.Family]string{
	model.IPv4: `*filter
:FORWARD DROP [0:0]
:A - [0:0]
:b - [0:0]
[3:400] -A FORWARD -s 10.0.0.0/9 ! -d 1.0.3.0/255.0.255.0 ! -i a+ -o lo -g A
-A FORWARD -i +
-A FORWARD ! -i +
-A FORWARD -p icmp
-A FORWARD -p esp
-A FORWARD ! -p 99 -j b
-A FORWARD -p udp -m udp ! --sport 5 -m comment --comment "it's \"so\" \\"
-A FORWARD -p tcp -m comment --comment simple_-x -m tcp ! --dport 7
-A FORWARD -p sctp -m sctp --sport 4 ! --dport 9:11
-A FORWARD -m mark --mark 5
-A FORWARD -m mark ! --mark 5/0xff
-A FORWARD -m state --state NEW
-A FORWARD -m conntrack --ctstate NEW,INVALID,RELATED,ESTABLISHED,UNTRACKED,SNAT,DNAT
-A FORWARD -m recent --update --seconds 5 --hitcount 3 --rttl --name x --rdest --mask 255.255.0.0
-A FORWARD -m recent ! --rcheck --seconds 5 --reap --hitcount 3 --name x
-A FORWARD -m recent --remove --name x
-A FORWARD -m addrtype ! --src-type LOCAL ! --dst-type UNICAST,LOCAL --limit-iface-in
-A FORWARD -m statistic --mode random ! --probability 0.25
-A FORWARD -p tcp -j REJECT --reject-with tcp-reset
COMMIT
*nat
-A PREROUTING -p tcp -j DNAT --to-destination 1.2.3.4-1.2.3.9:80-90 --random
-A PREROUTING -j DNAT --to-destination 1.2.3.4 --persistent
-A PREROUTING -p tcp -j DNAT --to-destination :80
-A PREROUTING -p tcp -j DNAT --to-destination 1.2.3.4:80-90/10
-A POSTROUTING -p tcp -j MASQUERADE --to-ports 4-9 --random
-A POSTROUTING -j MASQUERADE
COMMIT
`,
	model.IPv6: `*nat
-A PREROUTING -p tcp -j DNAT --to-destination [fd00::1-fd00::2]:80-90
-A PREROUTING ! -s fd00::/31 -d fd00::1:0/ffff::ffff:0 -j DNAT --to-destination fd00::1
COMMIT
*filter
-A FORWARD -p ipv6-icmp -m recent --set --name x --mask ffff:: -j REJECT --reject-with icmp6-adm-prohibited
COMMIT
`,
}

func TestSavePrintsOtherRulesAsTheToolDoes(t *testing.T) {
	for f, text := range otherRules {
		t.Run(f.String(), func(t *testing.T) { saveLikeTheTool(t, f, text) })
	}
}

// builtins declares all chains of a table that the tool prints whether they are
// there or not.
var builtins = strings.NewReplacer(
	"*filter\n", "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n",
	"*nat\n", "*nat\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n")

// saveLikeTheTool restores text and compares what Save and the tool print, with
// counters and without.
func saveLikeTheTool(t *testing.T, f model.Family, text string) {
	t.Helper()
	labtest.Tools(t, rulestest.Tool(f, "-restore"), rulestest.Tool(f, "-save"), "nfacct")
	err := labtest.Namespace(t).Do(func() error {
		for _, name := range counters {
			if err := rulestest.Run("", "nfacct", "add", name); err != nil {
				return err
			}
		}
		for part := range transactions(builtins.Replace(text)) {
			if err := rulestest.Run(part, rulestest.Tool(f, "-restore"), "-c", "-n"); err != nil {
				return err
			}
		}
		chains, err := list(f)
		if err != nil {
			return err
		}
		plain, plainErr := tool(f)
		counted, countedErr := tool(f, "-c")
		compare(t, plain, save(t, chains, iptables.SaveOptions{}))
		compare(t, counted, save(t, chains, iptables.SaveOptions{Counters: true}))
		return errors.Join(plainErr, countedErr)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// transactions splits a text for iptables-restore into ones whose message fits
// the socket buffer of an unprivileged user.
func transactions(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for block := range strings.SplitSeq(text, "COMMIT\n") {
			table, content, _ := strings.Cut(block, "\n")
			for lines := range slices.Chunk(slices.Collect(strings.Lines(content)), 200) {
				if !yield(table + "\n" + strings.Join(lines, "") + "COMMIT\n") {
					return
				}
			}
		}
	}
}

func list(f model.Family) (chains []rules.ListedChain, err error) {
	for _, name := range []string{"nat", "filter"} {
		found, err := rulestest.List(rules.Table{Family: f, Name: name})
		if err != nil {
			return nil, err
		}
		chains = append(chains, found...)
	}
	return chains, nil
}

// tool returns what iptables-nft-save prints, without its comments.
func tool(f model.Family, args ...string) (string, error) {
	out, err := exec.Command(rulestest.Tool(f, "-save"), args...).Output()
	var kept []string
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "#") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, ""), err
}

func save(t *testing.T, chains []rules.ListedChain, opts iptables.SaveOptions) string {
	t.Helper()
	var out bytes.Buffer
	if err := iptables.Save(&out, chains, opts); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func compare(t *testing.T, want, got string) {
	t.Helper()
	if want == "" {
		t.Error("the tool printed nothing")
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("-tool +Save\n%s", diff)
	}
}

// chainOf is a chain of one rule.
func chainOf(payload []byte) []rules.ListedChain {
	id := rules.ChainID{Table: rules.Table{Family: model.IPv4, Name: "filter"}, Name: "X"}
	return []rules.ListedChain{{ID: id, Rules: []rules.Listed{{Exprs: payload}}}}
}

func TestSaveNamesWhatItDoesNotKnow(t *testing.T) {
	for _, c := range []struct {
		want string
		list []expr.Any
	}{
		{"/* limit */", []expr.Any{&expr.Limit{Unit: expr.LimitTimeSecond}}},
		{"/* osf */", []expr.Any{&rules.Opaque{Name: "osf"}}},
		{"/* match mac revision 0 */", []expr.Any{&expr.Match{Name: "mac", Info: new(xt.Unknown)}}},
		{"/* target LOG revision 0 */", []expr.Any{&expr.Target{Name: "LOG", Info: new(xt.Unknown)}}},
		{"/* verdict -1 */", []expr.Any{&expr.Verdict{Kind: expr.VerdictContinue}}},
		{"/* cmp */", []expr.Any{&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{1}}}},
		{"/* meta set */", []expr.Any{&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: 1}}},
	} {
		payload, err := rules.Encode(model.IPv4, append(c.list, phrase.Accept()...))
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("*filter\n:X - [0:0]\n-A X %s -j ACCEPT\nCOMMIT\n", c.want)
		if got := save(t, chainOf(payload), iptables.SaveOptions{}); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
}

func TestSaveReturnsTheWritersError(t *testing.T) {
	want := errors.New("pipe closed")
	if err := iptables.Save(failing{want}, chainOf(nil), iptables.SaveOptions{}); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func FuzzSave(f *testing.F) {
	for _, list := range [][]expr.Any{phrase.Mark(1), phrase.InInterface("a+"), phrase.Jump("X"), phrase.DestinationPort(1)} {
		payload, err := rules.Encode(model.IPv4, list)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(model.IPv4), payload)
	}
	f.Fuzz(func(t *testing.T, family uint8, payload []byte) {
		chains := chainOf(payload)
		chains[0].ID.Table.Family = model.Family(family)
		if text := save(t, chains, iptables.SaveOptions{}); !strings.Contains(text, "\n-A X") {
			t.Errorf("no rule in %q", text)
		}
	})
}
