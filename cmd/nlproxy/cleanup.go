package main

import (
	"fmt"
	"strings"

	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/spf13/cobra"
)

func cleanupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cleanup",
		Short: "Remove all rules of nlproxy and of kube-proxy's iptables mode",
		Long: strings.TrimSpace(`
Remove all rules of nlproxy and of kube-proxy's iptables mode, in one transaction.

No API server is asked. KUBE-FIREWALL stays, which the kubelet uses too, and so
does everything that others own.`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := kernel.Dial(kernel.Options{})
			if err != nil {
				return err
			}
			defer conn.Close()
			n, err := dataplane.Cleanup(conn, conn)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "removed: %d operations in one transaction\n", n)
			return nil
		},
	}
}
