package golden

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// unordered are the chains that kube-proxy fills in the order of a map.
var unordered = []string{
	"KUBE-SERVICES", "KUBE-NODEPORTS", "KUBE-EXTERNAL-SERVICES", "KUBE-PROXY-FIREWALL",
}

const (
	ours   = "KUBE-"
	canary = "KUBE-PROXY-CANARY"
	// last is in the comment of a rule that has to end its chain.
	last = "must be the last rule"
	// server is in the comments for the Service that an API server makes by
	// itself, which no case has.
	server = `"default/kubernetes:https`
)

// Normalise is the ruleset that iptables-save and ip6tables-save printed, as
// the cases hold it: of the nat and filter tables, the chains named KUBE-* and
// those rules of built-in chains that name one, without counters, the chains
// and the rules of no fixed order sorted.
func Normalise(iptablesSave, ip6tablesSave string) string {
	var b strings.Builder
	for _, family := range []struct{ tool, save string }{
		{"iptables", iptablesSave},
		{"ip6tables", ip6tablesSave},
	} {
		tables := parse(family.save)
		for _, name := range []string{"nat", "filter"} {
			fmt.Fprintf(&b, "# %s %s\n", family.tool, name)
			tables[name].print(&b)
		}
	}
	return b.String()
}

// A table is rules by the chain they are in.
type table map[string][]string

// parse reads what iptables-save printed.
func parse(save string) map[string]table {
	tables := make(map[string]table)
	var t table
	for line := range strings.Lines(save) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "*"):
			t = make(table)
			tables[line[1:]] = t
		case strings.HasPrefix(line, ":"):
			t.chain(chainOf(line[1:]))
		case strings.HasPrefix(line, "-A "):
			t.rule(chainOf(line[len("-A "):]), line)
		}
	}
	return tables
}

// chainOf is the chain's name with which text begins.
func chainOf(text string) string {
	name, _, _ := strings.Cut(text, " ")
	return name
}

func (t table) chain(name string) {
	if strings.HasPrefix(name, ours) && name != canary {
		t[name] = nil
	}
}

func (t table) rule(chain, text string) {
	named := strings.HasPrefix(chain, ours) || strings.Contains(text, " "+ours)
	if named && !strings.Contains(text, server) {
		t[chain] = append(t[chain], text)
	}
}

func (t table) print(b *strings.Builder) {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		fmt.Fprintf(b, ":%s\n", name)
		for _, rule := range ordered(name, t[name]) {
			fmt.Fprintln(b, rule)
		}
	}
}

// ordered is the rules of a chain in their order, or sorted where they have
// none.
func ordered(chain string, rules []string) []string {
	if strings.HasPrefix(chain, ours) && !slices.Contains(unordered, chain) {
		return rules
	}
	return slices.SortedFunc(slices.Values(rules), func(a, b string) int {
		if ends := strings.Contains(a, last); ends != strings.Contains(b, last) {
			if ends {
				return 1
			}
			return -1
		}
		return strings.Compare(a, b)
	})
}
