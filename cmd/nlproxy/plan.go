package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/nlproxy/nlproxy/watch"
	"github.com/spf13/cobra"
)

func planCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan --manifests DIR",
		Short: "Print the ruleset that manifests and configuration make",
		Long: strings.TrimSpace(`
Print the ruleset that manifests and configuration make, as iptables-save does.

No kernel is asked, and no privilege needed. Node ports are taken to be served
on the addresses of the Node object, and the kernel to have named counters.
--manifests takes a directory, one file, or - for standard input. What is wrong
with an object is told on standard error and costs only that object or value;
the rest is printed, and the exit code is 1. Two services that claim one address
and port are told too, and are no error: one of them has it. Flags that say
nothing of rules, such as --cleanup, have no effect here.`),
		Args: cobra.NoArgs,
	}
	flags := config.Bind(cmd.Flags())
	var only selection
	only.bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, notes, err := configured(flags)
		if err != nil {
			return err
		}
		for _, note := range notes {
			fmt.Fprintln(cmd.ErrOrStderr(), note)
		}
		return printPlan(c, only, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

func printPlan(c config.Config, only selection, in io.Reader, out, complaints io.Writer) error {
	tables, err := only.tables()
	if err != nil {
		return err
	}
	s, problems, err := load(c, in)
	if err != nil {
		return err
	}
	for _, p := range problems {
		fmt.Fprintln(complaints, p)
	}
	s.Node = bound(s.Node, c.BindAddress)
	s.Node.Local = s.Node.Addresses
	counters := map[string]bool{iptables.InvalidDropped: true, iptables.LocalhostNodePorts: true}
	parts, conflicts := planned(planOptions(c, counters, c.Conntrack.TCPBeLiberal), s)
	for _, conflict := range conflicts {
		fmt.Fprintln(complaints, conflict)
	}
	chains, err := rules.Layout(parts)
	if err != nil {
		return err
	}
	chains = slices.DeleteFunc(chains, func(c rules.ListedChain) bool { return !slices.Contains(tables, c.ID.Table) })
	if err := save(out, chains, iptables.SaveOptions{}); err != nil {
		return err
	}
	if len(problems) > 0 {
		return codeWrong
	}
	return nil
}

func load(c config.Config, in io.Reader) (model.Snapshot, []watch.Problem, error) {
	o, err := sourceOptions(c, nil)
	switch {
	case err != nil:
		return model.Snapshot{}, nil, err
	case c.Manifests == "":
		return model.Snapshot{}, nil, errors.New("--manifests: a directory or file is needed, or - for standard input")
	case c.Manifests == "-":
		return watch.Read("standard input", in, o)
	}
	info, err := os.Stat(c.Manifests)
	if err != nil {
		return model.Snapshot{}, nil, fmt.Errorf("--manifests: %w", err)
	}
	if info.IsDir() {
		return watch.Load(c.Manifests, o)
	}
	file, err := os.Open(c.Manifests)
	if err != nil {
		return model.Snapshot{}, nil, fmt.Errorf("--manifests: %w", err)
	}
	defer file.Close()
	return watch.Read(c.Manifests, file, o)
}

// planned yields what both families' plans of s put into chains.
func planned(o plan.Options, s model.Snapshot) (iter.Seq[rules.Part], []plan.Conflict) {
	var plans []plan.Plan
	var conflicts []plan.Conflict
	for _, f := range model.Families {
		p := plan.New(f, o).Build(s)
		plans = append(plans, p)
		conflicts = append(conflicts, p.Conflicts...)
	}
	return func(yield func(rules.Part) bool) {
		for _, p := range plans {
			for part := range iptables.Encode(p) {
				if !yield(part) {
					return
				}
			}
		}
	}, conflicts
}
