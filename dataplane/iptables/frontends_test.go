package iptables_test

import (
	"errors"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/nlproxy/nlproxy/dataplane/rules/rulestest"
	"github.com/nlproxy/nlproxy/integration/golden"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

// TestFrontendsAreThoseOfKubeProxysRules has the tool write kube-proxy's rules
// and compares what is found in them with the text.
func TestFrontendsAreThoseOfKubeProxysRules(t *testing.T) {
	found := 0
	for _, c := range golden.Cases(t) {
		t.Run(c.Name, func(t *testing.T) {
			texts := restorable(c.Want)
			for _, f := range model.Families {
				want := textFrontends(f, texts[f])
				got := iptables.Frontends(frontendChains(restored(t, f, texts[f])))
				if diff := cmp.Diff(named(want), named(got)); diff != "" {
					t.Errorf("%s (-text +Frontends):\n%s", f, diff)
				}
				found += len(want)
			}
		})
	}
	if found < 90 {
		t.Errorf("%d frontends in all cases, too few to tell", found)
	}
}

// restored is what the kernel lists once the tool has restored text.
func restored(t *testing.T, f model.Family, text string) (chains []rules.ListedChain) {
	t.Helper()
	labtest.Tools(t, rulestest.Tool(f, "-restore"), "nfacct")
	err := labtest.Namespace(t).Do(func() (err error) {
		for _, name := range counters {
			err = errors.Join(err, rulestest.Run("", "nfacct", "add", name))
		}
		for part := range transactions(builtins.Replace(text)) {
			err = errors.Join(err, rulestest.Run(part, rulestest.Tool(f, "-restore"), "-n"))
		}
		if err == nil {
			chains, err = list(f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return chains
}

func frontendChains(all []rules.ListedChain) []rules.ListedChain {
	return slices.DeleteFunc(all, func(c rules.ListedChain) bool {
		return !slices.Contains(iptables.FrontendChains(), c.ID)
	})
}

var (
	frontendRule = regexp.MustCompile(`^-A (?:KUBE-SERVICES|KUBE-NODEPORTS|KUBE-EXTERNAL-SERVICES) .*--comment "?([a-z0-9-]+)/([a-z0-9-]+):?([a-z0-9-]*)[ "].*--dport (\d+)`)
	wholeAddress = regexp.MustCompile(` -d ([0-9a-f.:]+)/(?:32|128) `)
	protocolName = regexp.MustCompile(` -p (\w+) `)
)

// textFrontends finds them in what iptables-save prints.
func textFrontends(f model.Family, text string) map[iptables.Destination]model.PortName {
	all := map[iptables.Destination]model.PortName{}
	table := ""
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "*") {
			table = strings.TrimSpace(line)
		}
		m := frontendRule.FindStringSubmatch(line)
		if m == nil || table == "*filter" && strings.Contains(line, "KUBE-NODEPORTS") {
			continue // that one is for health checks
		}
		addr := map[model.Family]netip.Addr{model.IPv4: netip.IPv4Unspecified(), model.IPv6: netip.IPv6Unspecified()}[f]
		if whole := wholeAddress.FindStringSubmatch(line); whole != nil {
			addr = netip.MustParseAddr(whole[1])
		}
		p, err := model.ParseProtocol(strings.ToUpper(protocolName.FindStringSubmatch(line)[1]))
		if err != nil {
			panic(err)
		}
		port, err := strconv.ParseUint(m[4], 10, 16)
		if err != nil {
			panic(err)
		}
		d := iptables.Destination{Protocol: p, Addr: netip.AddrPortFrom(addr, uint16(port))}
		all[d] = model.PortName{Name: model.Name{Namespace: m[1], Name: m[2]}, PortKey: model.PortKey{Port: m[3], Protocol: p}}
	}
	return all
}

// named is a map as sorted text.
func named(all map[iptables.Destination]model.PortName) []string {
	var lines []string
	for d, name := range all {
		lines = append(lines, d.Protocol.String()+" "+d.Addr.String()+" "+name.String()+" "+name.Protocol.String())
	}
	slices.Sort(lines)
	return lines
}

// Rules as older versions of the tool write them, and others in the same chains.
func TestFrontendsOfOtherRules(t *testing.T) {
	const text = `*nat
:KUBE-SERVICES - [0:0]
-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "a/first cluster IP" -m tcp --dport 80 -j ACCEPT
-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "a/second cluster IP" -m tcp --dport 80 -j ACCEPT
-A KUBE-SERVICES -d 10.96.0.2/31 -p udp -m comment --comment "a/range:x cluster IP" -m udp --dport 53 -j ACCEPT
-A KUBE-SERVICES -d 10.96.0.3/32 -p tcp -m comment --comment "a/ports cluster IP" -m tcp --dport 80:90 -j ACCEPT
-A KUBE-SERVICES -d 10.96.0.4/32 -m comment --comment "a/every cluster IP" -j ACCEPT
-A KUBE-SERVICES -d 10.96.0.5/32 -p tcp -m comment --comment "no name" -m tcp --dport 80 -j ACCEPT
-A KUBE-SERVICES -d 10.96.0.6/32 -p tcp -m comment --comment "/ cluster IP" -m tcp --dport 80 -j ACCEPT
-A KUBE-SERVICES -d 10.96.0.7/32 -p tcp -m tcp --dport 80 -j ACCEPT
-A KUBE-SERVICES ! -d 10.96.0.8/32 -p tcp -m comment --comment "a/not" -m tcp ! --dport 80 -j ACCEPT
COMMIT
`
	got := named(iptables.Frontends(restored(t, model.IPv4, text)))
	want := []string{"tcp 10.96.0.1:80 a/first tcp"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFrontendsOfRulesThatCannotBeReadAreNone(t *testing.T) {
	if got := iptables.Frontends(chainOf([]byte{9, 0, 1, 0, 1})); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
