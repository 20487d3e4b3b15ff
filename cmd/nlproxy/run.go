package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/nlproxy/nlproxy/cmd/internal/logs"
	"github.com/nlproxy/nlproxy/cmd/internal/memory"
	"github.com/nlproxy/nlproxy/cmd/internal/metrics"
	"github.com/nlproxy/nlproxy/cmd/internal/ready"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

func runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Watch services and program this node, until told to stop",
		Long: strings.TrimSpace(`
Watch services and program this node, until told to stop by SIGTERM or SIGINT.

Rules stay when nlproxy stops, so that services go on; "nlproxy cleanup" removes
them. A start with nothing changed writes nothing. What kube-proxy left in its
other modes is removed once the rules that take its place are written.

A change of the file that --config names is taken up at once, and at SIGHUP; a
file that cannot be used is logged and changes nothing.`),
		Args: cobra.NoArgs,
	}
	flags := config.Bind(cmd.Flags())
	asked := config.BindVersion(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *asked != "false" {
			return printVersion(cmd.OutOrStdout(), *asked == "raw")
		}
		c, notes, err := configured(flags)
		if err != nil {
			return err
		}
		switch {
		case c.WriteConfigTo != "":
			return logged(c, notes, func(*zap.Logger) error { return writeConfig(c) })
		case c.Cleanup:
			return logged(c, notes, func(*zap.Logger) error { return cleanup(cmd.Context(), cmd.OutOrStdout(), true) })
		case c.InitOnly:
			return logged(c, notes, func(log *zap.Logger) error { return prepare(c, log) })
		}
		return serveNode(cmd.Context(), flags, c, notes)
	}
	return cmd
}

// serveNode is the daemon.
func serveNode(ctx context.Context, flags *config.Flags, c config.Config, notes []string) error {
	signal.Ignore(unix.SIGPIPE) // nobody reads the log any more: no reason to end
	hangup := make(chan os.Signal, 1)
	if c.File != "" { // from before the first look on, and between two configurations
		signal.Notify(hangup, unix.SIGHUP)
		defer signal.Stop(hangup)
	}
	_ = memory.ReleaseStart() // what fails here fails again, and is logged, once the node is served
	notifier, err := ready.New()
	if err != nil {
		notes = append(notes, err.Error())
	}
	return supervisor{flags, notifier, metrics.ObserveClients(), logs.CaptureKlog(), hangup}.run(ctx, c, notes)
}

// logged runs what ends by itself, with a log.
func logged(c config.Config, notes []string, run func(*zap.Logger) error) error {
	l, err := logs.New(logs.Options{Logging: c.Logging})
	if err != nil {
		return err
	}
	defer l.Close()
	for _, note := range notes {
		l.Logger().Warn(note)
	}
	return run(l.Logger())
}

// writeConfig writes the configuration as a file that can be given to --config.
func writeConfig(c config.Config) error {
	text, err := c.YAML()
	if err != nil {
		return fmt.Errorf("--write-config-to: %w", err)
	}
	if err := os.WriteFile(c.WriteConfigTo, text, 0o644); err != nil {
		return fmt.Errorf("--write-config-to: %w", err)
	}
	return nil
}

// printVersion prints one line; raw, with how the binary was built.
func printVersion(w io.Writer, raw bool) error {
	text := "nlproxy " + version()
	if raw {
		text = fmt.Sprintf("nlproxy version=%s go=%s platform=%s/%s", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// version is that of the module that the binary was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return info.Main.Version
}
