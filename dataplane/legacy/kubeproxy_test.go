package legacy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/integration/golden"
)

// canaries are the chains that kube-proxy watches.
var canaries = map[string][]string{
	"mangle": {":KUBE-PROXY-CANARY - [0:0]\n"},
	"nat":    {":KUBE-PROXY-CANARY - [0:0]\n"},
	"filter": {":KUBE-PROXY-CANARY - [0:0]\n"},
}

// kubeProxys are the rules of a case by family and table, with counters.
func kubeProxys(c golden.Case) map[model.Family]map[string]*section {
	all := map[model.Family]map[string]*section{model.IPv4: {}, model.IPv6: {}}
	for _, tables := range all {
		for name, chains := range canaries {
			tables[name] = &section{chains: chains}
		}
	}
	for part := range strings.SplitSeq(c.Want, "# ") {
		head, body, _ := strings.Cut(part, "\n")
		program, name, found := strings.Cut(head, " ")
		if !found {
			continue
		}
		f := model.IPv4
		if program == "ip6tables" {
			f = model.IPv6
		}
		all[f][name].read(body)
	}
	return all
}

// read adds what a case says of a table.
func (s *section) read(body string) {
	for line := range strings.Lines(body) {
		switch {
		case strings.HasPrefix(line, ":KUBE-"):
			s.chains = append(s.chains, strings.TrimSpace(line)+" - [0:0]\n")
		case strings.HasPrefix(line, "-A "):
			n := len(s.rules) + 1
			s.rules = append(s.rules, fmt.Sprintf("[%d:%d] %s", n, n*60, line))
		}
	}
}

func TestRulesOfOthersStayWithTheirCounters(t *testing.T) {
	for _, c := range golden.Cases(t) {
		for f, kube := range kubeProxys(c) {
			t.Run(fmt.Sprint(c.Name, " ", f), func(t *testing.T) {
				n := newNode(t)
				n.accounting()
				removed := n.wantForeign(f, mixed(foreignOf(f), kube))
				if len(removed) != 3 || removed[0].Table.Name != "nat" || removed[1].Table.Name != "filter" {
					t.Errorf("removed %v", removed)
				}
			})
		}
	}
}
