package main

import (
	"fmt"
	"strings"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/spf13/cobra"
)

// root returns the command and all its subcommands. Without one of them it is
// the daemon.
func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "nlproxy",
		Short: "Serve the Services of a Kubernetes cluster on this node",
		Long: strings.TrimSpace(`
Serve the Services of a Kubernetes cluster on this node.

nlproxy watches Services and EndpointSlices and programs nf_tables over netlink.
It takes the flags and the configuration file of kube-proxy and leaves the same
KUBE-* chains. With no command, nlproxy is "nlproxy run".`),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.CompletionOptions.DisableDefaultCmd = true
	daemon := runCommand()
	cmd.RunE = daemon.RunE
	cmd.Flags().AddFlagSet(daemon.Flags())
	cmd.Flags().SetNormalizeFunc(daemon.Flags().GetNormalizeFunc())
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	})
	cmd.AddCommand(daemon, planCommand(), rulesCommand(), flowsCommand(), cleanupCommand(), demoCommand(), manifestCommand())
	return cmd
}

// configured returns the configuration that flags and the file they name make.
func configured(flags *config.Flags) (config.Config, []string, error) {
	return flags.Config(readFile)
}
