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

Stop nlproxy first: one that runs writes its rules again at its next
synchronisation. No API server is asked. KUBE-FIREWALL stays, which the kubelet
uses too, and so do everything that others own, net.ipv4.conf.all.route_localnet
and the named counters (nfacct).`),
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
			if n == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "nothing to remove")
				return nil
			}
			fmt.Fprintf(cmd.OutOrStdout(), "removed in %d operations\n", n)
			return nil
		},
	}
}
