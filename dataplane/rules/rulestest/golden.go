package rulestest

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables/expr"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

var update = flag.Bool("update", false, "write golden files anew, with the tools on this machine")

// What rules of cases may refer to: a chain to jump to and an object of
// nfnetlink_acct.
const (
	Target  = "NLPROXY-TEST"
	Counter = "nlproxy_test"
)

// A Case is one rule as iptables-nft is asked for it and as we make it.
type Case struct {
	Name   string
	Family model.Family
	// Table and Chain default to filter and FORWARD.
	Table, Chain string
	// Rule is what follows `-A CHAIN`, fields split at blanks.
	Rule string
	// Exprs is the rule in our words.
	Exprs []expr.Any
}

func (c Case) chain() rules.ChainID {
	id := rules.ChainID{Table: rules.Table{Family: c.Family, Name: "filter"}, Name: "FORWARD"}
	if c.Table != "" {
		id.Table.Name = c.Table
	}
	if c.Chain != "" {
		id.Name = c.Chain
	}
	return id
}

// key names a case in the golden file.
func (c Case) key() string { return c.Family.String() + " " + c.Name }

// Tool is the program that writes rules of family f, suffixed for instance with
// "-save".
func Tool(f model.Family, suffix string) string {
	if f == model.IPv6 {
		return "ip6tables-nft" + suffix
	}
	return "iptables-nft" + suffix
}

// Golden compares what each case encodes to with testdata/golden.txt, what
// iptables-nft left in a kernel for the same rule, and the file with what the
// tool on this machine leaves.
//
// Bytes are compared in canonical form, because what is sent has flags that the
// kernel does not list (NLA_F_NESTED) and lacks defaults that it adds (the
// operation of a bitwise expression).
func Golden(t *testing.T, cases []Case) {
	file := filepath.Join("testdata", "golden.txt")
	if *update {
		write(t, file, cases)
	}
	golden := read(t, file)
	for _, c := range cases {
		t.Run(c.key(), func(t *testing.T) { compare(t, golden[c.key()], encode(t, c)) })
	}
	t.Run("tool", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.key(), func(t *testing.T) { compare(t, golden[c.key()], fromTool(t, c)) })
		}
	})
}

func encode(t *testing.T, c Case) []byte {
	t.Helper()
	b, err := rules.Encode(c.Family, c.Exprs)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func compare(t *testing.T, golden, got []byte) {
	t.Helper()
	if len(golden) == 0 {
		t.Fatal("no golden bytes; run with -update")
	}
	if want, got := Canonical(t, golden), Canonical(t, got); !bytes.Equal(want, got) {
		t.Errorf("canonical forms differ\ngolden\n%sgot\n%s", hex.Dump(want), hex.Dump(got))
	}
}

// Canonical is rules.Canonical, which must not fail.
func Canonical(t *testing.T, exprs []byte) []byte {
	t.Helper()
	b, err := rules.Canonical(nil, exprs)
	if err != nil {
		t.Fatalf("%v\n%s", err, hex.Dump(exprs))
	}
	return b
}

// fromTool has iptables-nft write a case, and returns what the kernel lists.
func fromTool(t *testing.T, c Case) (exprs []byte) {
	t.Helper()
	labtest.Tools(t, Tool(c.Family, ""), "nfacct")
	id := c.chain()
	err := labtest.Namespace(t).Do(func() error {
		tool, table := Tool(c.Family, ""), []string{"-w", "-t", id.Table.Name}
		err := errors.Join(
			Run("", "nfacct", "add", Counter),
			Run("", tool, append(table, "-N", Target)...),
			Run("", tool, slices.Concat(table, []string{"-A", id.Name}, strings.Fields(c.Rule))...))
		if err != nil {
			return err
		}
		exprs, err = only(id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return exprs
}

// only returns the one rule of a chain.
func only(id rules.ChainID) ([]byte, error) {
	chains, err := List(id.Table)
	if err != nil {
		return nil, err
	}
	for _, c := range chains {
		if c.ID == id && len(c.Rules) == 1 {
			return c.Rules[0].Exprs, nil
		}
	}
	return nil, fmt.Errorf("no single rule in %s", id)
}

// Run runs a program with stdin, and returns an error that has its output.
func Run(stdin, program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

func read(t *testing.T, file string) map[string][]byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	golden := map[string][]byte{}
	for line := range strings.Lines(string(content)) {
		key, text, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if golden[key], err = hex.DecodeString(text); err != nil {
			t.Fatalf("%s: %s: %v", file, key, err)
		}
	}
	return golden
}

func write(t *testing.T, file string, cases []Case) {
	t.Helper()
	lines := map[string]string{}
	for _, c := range cases {
		lines[c.key()] = c.key() + "\t" + hex.EncodeToString(fromTool(t, c)) + "\n"
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	content := strings.Join(slices.Sorted(maps.Values(lines)), "")
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
