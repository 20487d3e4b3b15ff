package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/leftovers"
	"github.com/spf13/cobra"
)

func cleanupCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove all rules of nlproxy and of kube-proxy's iptables mode",
		Long: strings.TrimSpace(`
Remove all rules of nlproxy and of kube-proxy's iptables mode from nf_tables, in
one transaction.

Stop nlproxy first: one that runs writes its rules again at its next
synchronisation. No API server is asked. KUBE-FIREWALL stays, which the kubelet
uses too, and so do everything that others own, net.ipv4.conf.all.route_localnet
and the named counters (nfacct).

With --all, or "nlproxy --cleanup", what kube-proxy leaves in its other modes is
removed too: its nftables tables, virtual servers, device and sets of ipvs, and
chains in the legacy tables of iptables.`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cleanup(cmd.OutOrStdout(), all) },
	}
	cmd.Flags().BoolVar(&all, "all", false, "also remove what kube-proxy leaves in its other modes")
	return cmd
}

// cleanup removes our rules, or all there can be of kube-proxy too.
func cleanup(out io.Writer, all bool) error {
	conn, err := kernel.Dial(kernel.Options{})
	if err != nil {
		return err
	}
	defer conn.Close()
	n, err := dataplane.Cleanup(conn, conn)
	if err != nil {
		return err
	}
	if n > 0 {
		fmt.Fprintf(out, "removed in %d operations\n", n)
	}
	var found []leftovers.Found
	if all {
		found, err = leftovers.Remove(leftovers.Options{Kernel: conn})
	}
	if len(found) > 0 {
		fmt.Fprintln(out, "removed, unless it says that it stays:", leftovers.Describe(found))
	}
	if n == 0 && len(found) == 0 && err == nil {
		fmt.Fprintln(out, "nothing to remove")
	}
	return err
}
