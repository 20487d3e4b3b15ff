package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
)

// kernelTable counts what of ours the kernel has in one table.
type kernelTable struct {
	table         rules.Table
	chains, rules int
}

// inKernel lists what the kernel has: how much in each table, and one service
// as iptables-save prints it.
func inKernel(service string) (tables []kernelTable, excerpt []string, err error) {
	conn, err := kernel.Dial(kernel.Options{})
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()
	chains, err := conn.List(iptables.Tables())
	if err != nil {
		return nil, nil, err
	}
	var text bytes.Buffer
	if err := iptables.Save(&text, natIPv4(chains), iptables.SaveOptions{}); err != nil {
		return nil, nil, err
	}
	excerpt = excerptOf(strings.Split(text.String(), "\n"), service)
	if len(excerpt) == 0 {
		err = fmt.Errorf("service %s has no rules", service)
	}
	return countTables(chains), excerpt, err
}

// natIPv4 picks the chains that translate IPv4 addresses.
func natIPv4(chains []rules.ListedChain) (picked []rules.ListedChain) {
	for _, c := range chains {
		if c.ID.Table == (rules.Table{Family: model.IPv4, Name: "nat"}) {
			picked = append(picked, c)
		}
	}
	return picked
}

// countTables counts the chains that are ours, and the rules in them.
func countTables(chains []rules.ListedChain) (counts []kernelTable) {
	for _, table := range iptables.Tables() {
		count := kernelTable{table: table}
		for _, c := range chains {
			kind, ours := iptables.Classify(c.ID)
			if ours && kind != rules.Lent && c.ID.Table == table {
				count.chains++
				count.rules += len(c.Rules)
			}
		}
		if count.chains > 0 {
			counts = append(counts, count)
		}
	}
	return counts
}

// excerptOf picks from iptables-save's lines how a service's cluster IP leads to
// its endpoints: the rule in KUBE-SERVICES, the chain that spreads, and the
// first endpoint's.
func excerptOf(lines []string, service string) (picked []string) {
	chain := "KUBE-SERVICES"
	for range 3 {
		next := ""
		for _, line := range lines {
			if !strings.HasPrefix(line, "-A "+chain+" ") || !strings.Contains(line, `"`+service) {
				continue
			}
			picked = append(picked, line)
			if _, target, ok := strings.Cut(line, " -j KUBE-S"); ok && next == "" {
				next = "KUBE-S" + target
			}
		}
		chain = next
	}
	return picked
}
