package main

import (
	"context"
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
		Short: "Remove all rules of nlproxy",
		Long: strings.TrimSpace(`
Remove all rules of nlproxy from nf_tables, in one transaction, and those that
kube-proxy's iptables mode has left there. Where these have its canary, a chain
that nlproxy removes when it takes over, kube-proxy may be running, and nothing
is removed: on the way back to it, this is right on every node.

Stop nlproxy first: one that runs writes its rules again at its next
synchronisation. No API server is asked. KUBE-FIREWALL stays, which the kubelet
uses too, and so do everything that others own, net.ipv4.conf.all.route_localnet
and the named counters (nfacct).

With --all, or "nlproxy --cleanup", everything goes, and what kube-proxy leaves in
its other modes as well: its nftables tables, virtual servers, device and sets of
ipvs, and chains in the legacy tables of iptables. A kube-proxy that runs loses
its rules by that.`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cleanup(cmd.Context(), cmd.OutOrStdout(), all) },
	}
	cmd.Flags().BoolVar(&all, "all", false, "remove the rules of a kube-proxy too, in whatever mode")
	return cmd
}

// cleanup removes our rules, or all there can be of kube-proxy too.
func cleanup(ctx context.Context, out io.Writer, all bool) error {
	conn, err := kernel.Dial(kernel.Options{})
	if err != nil {
		return err
	}
	defer conn.Close()
	if !all {
		taken, err := dataplane.TakenOver(conn)
		if err != nil {
			return err
		}
		if taken {
			fmt.Fprintln(out, "nothing is removed: the rules are a kube-proxy's, whose KUBE-PROXY-CANARY is there; --all removes them")
			return nil
		}
	}
	n, err := dataplane.Cleanup(conn, conn)
	if err != nil {
		return err
	}
	if n > 0 {
		fmt.Fprintf(out, "removed in %d operations\n", n)
	}
	var found []leftovers.Found
	if all {
		// It ends by itself, and half of a cleanup would be nobody's wish.
		found, err = leftovers.Remove(ctx, leftovers.Options{Kernel: conn})
	}
	if len(found) > 0 {
		fmt.Fprintln(out, "removed, unless it says that it stays:", leftovers.Describe(found))
	}
	if n == 0 && len(found) == 0 && err == nil {
		fmt.Fprintln(out, "nothing to remove")
	}
	return err
}
