package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/nlproxy/nlproxy/cmd/nlproxy/deploy"
	"github.com/spf13/cobra"
)

//go:embed Dockerfile
var dockerfile string

func manifestCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "manifest",
		Short: "Print what runs nlproxy on every node of a cluster",
		Long: strings.TrimSpace(`
Print what runs nlproxy on every node of a cluster: ServiceAccount, ClusterRole,
ClusterRoleBinding, ConfigMap and DaemonSet, in namespace kube-system, for
kubectl apply. What to do with them is in the comments at their top.

--output-dir writes them as a kustomize base instead. With --takeover they are
for a cluster where kube-proxy runs, and the way there and back is described.`),
		Args: cobra.NoArgs,
	}
	var o deploy.Options
	var dir string
	flags := cmd.Flags()
	flags.StringVar(&o.Image, "image", deploy.DefaultImage, "image of the container")
	flags.StringVar(&o.Server, "server", "", "URL by which nodes reach the API server without a Service, such as https://192.0.2.10:6443 (default: the address of the Service kubernetes)")
	flags.StringVar(&o.ClusterCIDR, "cluster-cidr", "", "address range of all pods, or one of each IP family with a comma between")
	flags.BoolVar(&o.Init, "with-init", false, "add a privileged init container that sets the sysctls which NET_ADMIN alone cannot")
	flags.BoolVar(&o.Takeover, "takeover", false, "for a cluster where kube-proxy runs as kubeadm installs it; its ConfigMap is used")
	flags.StringVar(&dir, "output-dir", "", "write a kustomize base into this directory, over no file that is there")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.Server == "" && !o.Takeover {
			fmt.Fprintln(cmd.ErrOrStderr(), "nlproxy: without --server the API server is reached by the address of the Service kubernetes, "+
				"which works on a node only while another proxy, or what one has left, serves it")
		}
		if dir != "" {
			return writeBase(o, dir)
		}
		text, err := deploy.Stream(o)
		if err != nil {
			return err
		}
		_, err = io.WriteString(cmd.OutOrStdout(), text)
		return err
	}
	cmd.AddCommand(alertsCommand(),
		printCommand("dashboard", "Print a Grafana dashboard", deploy.Dashboard),
		printCommand("systemd", "Print a systemd unit for a node without a kubelet to deploy to", deploy.Unit),
		printCommand("dockerfile", "Print the recipe of the image", dockerfile))
	return cmd
}

// writeBase writes a kustomize base into dir, which is made if it is not there.
func writeBase(o deploy.Options, dir string) error {
	files, err := deploy.Base(o, dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(dir, f.Name)); err == nil {
			return fmt.Errorf("--output-dir: %s is there already", filepath.Join(dir, f.Name))
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("--output-dir: %w", err)
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), []byte(f.Content), 0o644); err != nil {
			return fmt.Errorf("--output-dir: %w", err)
		}
	}
	return nil
}

// printCommand is a command that prints a text.
func printCommand(name, short, text string) *cobra.Command {
	return &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), text)
			return err
		},
	}
}

func alertsCommand() *cobra.Command {
	cmd := printCommand("alerts", "Print alert rules for Prometheus", "")
	object := cmd.Flags().Bool("prometheus-rule", false, "print them as a PrometheusRule, the object of Prometheus Operator")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		text := deploy.Alerts
		if *object {
			text = deploy.PrometheusRule()
		}
		_, err := io.WriteString(cmd.OutOrStdout(), text)
		return err
	}
	return cmd
}
