package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/spf13/cobra"
)

// selection is what of the kernel's ruleset to print.
type selection struct {
	table    string
	family   string
	everyone bool
	plain    bool
}

func rulesCommand() *cobra.Command {
	var s selection
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Print the ruleset in the kernel, counters included",
		Long: strings.TrimSpace(`
Print the ruleset in the kernel as iptables-save does, counters included, with
no tool installed: the chains of nlproxy or of kube-proxy's iptables mode, and
the base chains that lead to them.`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := kernel.Dial(kernel.Options{})
			if err != nil {
				return err
			}
			defer conn.Close()
			chains, err := s.list(conn)
			if err != nil {
				return err
			}
			return save(cmd.OutOrStdout(), chains, iptables.SaveOptions{Counters: !s.plain})
		},
	}
	s.bind(cmd)
	cmd.Flags().BoolVarP(&s.everyone, "all", "a", false, "also the chains of others in these tables")
	cmd.Flags().BoolVar(&s.plain, "no-counters", false, "leave out packets and bytes")
	return cmd
}

func (s *selection) bind(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&s.table, "table", "t", "", "only this table: nat, filter or mangle")
	cmd.Flags().StringVarP(&s.family, "family", "f", "", "only this family: ipv4 or ipv6")
}

// save prints chains, of each family under a line with the program that its
// lines are for.
func save(w io.Writer, chains []rules.ListedChain, o iptables.SaveOptions) error {
	programs := map[model.Family]string{model.IPv4: "iptables-restore", model.IPv6: "ip6tables-restore"}
	for _, f := range model.Families {
		of := slices.Clone(chains)
		of = slices.DeleteFunc(of, func(c rules.ListedChain) bool { return c.ID.Table.Family != f })
		if len(of) == 0 {
			continue
		}
		if _, err := fmt.Fprintf(w, "# %v: for %s\n", f, programs[f]); err != nil {
			return err
		}
		if err := iptables.Save(w, of, o); err != nil {
			return err
		}
	}
	return nil
}

func (s selection) list(conn *kernel.Conn) ([]rules.ListedChain, error) {
	tables, err := s.tables()
	if err != nil {
		return nil, err
	}
	chains, err := conn.List(tables)
	if err != nil {
		return nil, fmt.Errorf("list rules: %w", err)
	}
	if s.everyone {
		return chains, nil
	}
	var ours []rules.ListedChain
	for _, c := range chains {
		if _, ok := iptables.Classify(c.ID); ok {
			ours = append(ours, c)
		}
	}
	return ours, nil
}

func (s selection) tables() (chosen []rules.Table, err error) {
	family, err := parseFamily(s.family)
	if err != nil {
		return nil, err
	}
	for _, t := range iptables.Tables() {
		if (s.table == "" || s.table == t.Name) && (family == 0 || family == t.Family) {
			chosen = append(chosen, t)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("--table %q: must be nat, filter or mangle", s.table)
	}
	return chosen, nil
}

var familyNames = map[model.Family]string{model.IPv4: "ipv4", model.IPv6: "ipv6"}
