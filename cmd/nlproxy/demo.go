package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

//go:embed demo
var demoManifests embed.FS

func demoCommand() *cobra.Command {
	var d demo
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show all of it at work on a node of its own, with real traffic",
		Long: strings.TrimSpace(`
Show all of it at work on a node of its own, with real traffic.

The demonstration needs no root, no cluster and no tool, and touches nothing of
this host. It runs itself again in a private user, network and mount namespace,
makes a small node there - pods, a pod elsewhere, a client outside -, and runs
"nlproxy run --manifests" on it, on manifests that the binary carries. Then it
connects, by TCP, UDP and SCTP, to every kind of service: cluster IPs, several
ports, node ports, load balancers of both traffic policies and with source
ranges, external IPs, session affinity, the internal traffic policy, a pod that
reaches itself, services without endpoints and with terminating ones, both IP
families, and a service that changes meanwhile.

It prints what the kernel was given, how connections spread over endpoints, which
address servers saw and why, what was refused or dropped, and how long all of it
took, and holds every outcome against the one that is right. It takes a few
seconds and ends with code 1 if anything was not as it should be, 130 if it was
interrupted. Nothing of it is left behind.

With --stay the node stays, and a shell ($SHELL, or /bin/sh) runs on it until
you leave. No other program than that shell is ever started.

Where users may not make namespaces, the error names the setting. Root makes
none for users: sudo ./nlproxy demo, or sudo go run ./cmd/nlproxy demo.`),
		Example: "  nlproxy demo\n  nlproxy demo --stay",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if d.manifests, err = fs.Sub(demoManifests, "demo"); err != nil {
				return err
			}
			d.out, d.errs = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return d.inNamespaces(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&d.remain, "stay", false, "keep the node afterwards, and run a shell on it")
	return cmd
}

// exitCode is the error of a command that has said itself what went wrong.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// The codes with which the demonstration ends if not well.
const (
	codeWrong       exitCode = 1
	codeInterrupted exitCode = 130
)

// demo is one demonstration.
type demo struct {
	// manifests holds *.yaml, and those of the changes.
	manifests fs.FS
	// remain says that a shell is to run afterwards.
	remain bool
	// out is for what is to be read, errs for warnings and errors.
	out, errs io.Writer
}

// inNamespaces carries out the demonstration in private namespaces, which is in
// another process than the first.
func (d demo) inNamespaces(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return codeInterrupted
	}
	code, err := lab.EnterAsRoot(func() int { return int(d.carryOut(ctx)) })
	switch {
	case code == 0 && err == nil:
		return nil
	case ctx.Err() != nil:
		return codeInterrupted
	case err != nil:
		return fmt.Errorf("demo: %w", explained(err))
	}
	return exitCode(code)
}

// carryOut runs the demonstration and says what kept it from its verdict. It
// cleans up as well when its terminal or its reader goes away.
func (d demo) carryOut(ctx context.Context) exitCode {
	ctx, stop := signal.NotifyContext(ctx, unix.SIGHUP, unix.SIGPIPE)
	defer stop()
	right, err := d.run(ctx)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(d.errs, "nlproxy: demo: interrupted")
		return codeInterrupted
	case err != nil:
		fmt.Fprintf(d.errs, "nlproxy: demo: %v\n", err)
		return codeWrong
	case !right:
		return codeWrong
	}
	return 0
}

// run prepares everything, shows it, and cleans up. It reports whether all was
// as it should be.
func (d demo) run(ctx context.Context) (right bool, err error) {
	dir, err := os.MkdirTemp("", "nlproxy-demo-")
	if err != nil {
		return false, fmt.Errorf("make a directory for the manifests: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := d.writeManifests(manifestsIn(dir)); err != nil {
		return false, fmt.Errorf("write the manifests: %w", err)
	}
	return d.show(ctx, dir)
}

func manifestsIn(dir string) string { return filepath.Join(dir, "manifests") }
func programsIn(dir string) string  { return filepath.Join(dir, "bin") }

// writeManifests makes dir and puts the manifests into it, not those of the
// changes.
func (d demo) writeManifests(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	names, err := fs.Glob(d.manifests, "*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		content, err := fs.ReadFile(d.manifests, name)
		if err != nil {
			return err
		}
		if err := replace(filepath.Join(dir, name), content); err != nil {
			return err
		}
	}
	return nil
}
