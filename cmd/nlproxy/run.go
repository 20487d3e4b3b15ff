package main

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/nlproxy/nlproxy/cmd/internal/metrics"
	"github.com/nlproxy/nlproxy/cmd/internal/serve"
	"github.com/nlproxy/nlproxy/conntrack"
	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"github.com/nlproxy/nlproxy/dataplane/sysctl"
	"github.com/nlproxy/nlproxy/watch"
	"github.com/nlproxy/nlproxy/watch/addr"
	"github.com/nlproxy/nlproxy/watch/pace"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
)

// routeLocalnet is the setting, below /proc/sys, that node ports on 127.0.0.0/8
// depend on.
const routeLocalnet = "net/ipv4/conf/all/route_localnet"

func runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Watch services and program this node, until told to stop",
		Long: strings.TrimSpace(`
Watch services and program this node, until told to stop by SIGTERM or SIGINT.

Rules stay when nlproxy stops, so that services go on; "nlproxy cleanup" removes
them. A start with nothing changed writes nothing.`),
		Args: cobra.NoArgs,
	}
	flags := config.Bind(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, notes, err := configured(flags)
		if err != nil {
			return err
		}
		log, err := newLogger(c.Logging)
		if err != nil {
			return err
		}
		for _, note := range notes {
			log.Warn(note)
		}
		return run(cmd.Context(), c, nil, log)
	}
	return cmd
}

// run serves until ctx is done. If observe is not nil, it is told of each
// synchronisation.
func run(ctx context.Context, c config.Config, observe func(dataplane.Report), log *zap.Logger) error {
	conn, err := kernel.Dial(kernel.Options{})
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Generation(); err != nil {
		return err // there is no right to do anything here, and never will be
	}
	limits, err := newLimits(c, log)
	if err != nil {
		return err
	}
	measured, err := metrics.New(metrics.Options{Stats: conntrack.ReadStats, Unwritable: limits.Unwritable, Logger: log})
	if err != nil {
		return err
	}
	flows, err := newFlows(c, measured.ObserveFlows, log)
	if err != nil {
		return err
	}
	defer flows.table.Close()
	report := func(r dataplane.Report) {
		measured.Observe(r)
		if observe != nil {
			observe(r)
		}
	}
	d, err := newDataplane(c, conn, limits, hooks{report, flows.cleaner.Update}, log)
	if err != nil {
		return err
	}
	s, err := newSource(c, log)
	if err != nil {
		return err
	}
	beside, err := besides(c, flows.cleaner, measured, log)
	if err != nil {
		return err
	}
	announce(c, log)
	err = alongside(ctx, beside, func(ctx context.Context) error { return follow(ctx, c, s, d, log) })
	log.Info("stopped; the rules stay, and services go on")
	return err
}

// besides returns what runs beside the rule sync, each until its context is done.
func besides(c config.Config, cleaner *conntrack.Cleaner, m *metrics.Metrics, log *zap.Logger) ([]func(context.Context), error) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	server, err := serve.New(serve.Options{Name: "metrics", Address: c.MetricsBindAddress, Handler: mux, Logger: log})
	if err != nil {
		return nil, err
	}
	recorder, err := newEvents(c, log)
	if err != nil {
		return nil, err
	}
	return []func(context.Context){
		cleaner.Run,
		func(ctx context.Context) { server.Run(ctx) },
		recorder.Run,
		func(ctx context.Context) { watchFull(ctx, recorder, log) },
	}, nil
}

// alongside runs main, and the others until it is over.
func alongside(ctx context.Context, others []func(context.Context), main func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, other := range others {
		running.Go(func() { other(ctx) })
	}
	err := main(ctx)
	stop()
	running.Wait()
	return err
}

// announce says by what settings this run goes.
func announce(c config.Config, log *zap.Logger) {
	log.Info("starts",
		zap.String("version", version()), zap.String("mode", string(c.Mode)),
		zap.String("manifests", c.Manifests), zap.String("kubeconfig", c.ClientConnection.Kubeconfig),
		zap.String("node", c.HostnameOverride), zap.String("detectLocalMode", string(c.DetectLocal.Mode)),
		zap.Stringers("clusterCIDRs", c.DetectLocal.ClusterCIDRs),
		zap.Duration("minSyncPeriod", c.MinSyncPeriod), zap.Duration("syncPeriod", c.SyncPeriod))
	if c.DetectLocal.Mode == config.DetectLocalByClusterCIDR && len(c.DetectLocal.ClusterCIDRs) == 0 {
		log.Warn("without a cluster CIDR pods cannot be told from others: traffic to cluster IPs is not masqueraded, " +
			"and an external traffic policy Local binds pods too (--cluster-cidr, detectLocal.clusterCIDRs)")
	}
}

// version is that of the module that the binary was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return info.Main.Version
}

// hooks are told of what a dataplane does; nil ones are not.
type hooks struct {
	report    func(dataplane.Report)
	committed func([]plan.Plan, model.Node)
}

// newDataplane prepares the kernel and what programs it. The first rule may be
// what loads connection tracking, so limits are looked at after each write too.
func newDataplane(c config.Config, conn *kernel.Conn, limits *conntrack.Applier, h hooks, log *zap.Logger) (*dataplane.Dataplane, error) {
	var settings sysctl.Tree
	limits.Apply()
	counters, err := ensureCounters(conn)
	if err != nil {
		log.Warn("packets are not counted by name", zap.Error(err))
	}
	return dataplane.New(dataplane.Options{
		Reader: conn,
		Writer: conn,
		Plan:   planOptions(c, counters, limits.Liberal()),
		RouteLocalnet: func() error {
			_, err := settings.Write(routeLocalnet, "1")
			return err
		},
		Logger: log,
		Committed: func(plans []plan.Plan, node model.Node) {
			limits.Apply()
			if h.committed != nil {
				h.committed(plans, node)
			}
		},
		Observer: h.report,
	})
}

func ensureCounters(conn *kernel.Conn) (map[string]bool, error) {
	names, err := conn.EnsureCounters([]string{iptables.InvalidDropped, iptables.LocalhostNodePorts})
	have := make(map[string]bool, len(names))
	for _, name := range names {
		have[name] = true
	}
	return have, err
}

// follow keeps d in step with s and the addresses of this host.
func follow(ctx context.Context, c config.Config, s *watch.Source, d *dataplane.Dataplane, log *zap.Logger) error {
	runner, err := pace.New(pace.Options{Min: c.MinSyncPeriod, Burst: 2, Max: c.SyncPeriod, Retry: retryAfter},
		func(ctx context.Context) error {
			snapshot, ok := s.Snapshot()
			if !ok {
				return nil
			}
			snapshot.Node = bound(snapshot.Node, c.BindAddress)
			err := d.Set(ctx, snapshot)
			if err != nil && ctx.Err() == nil {
				log.Error("rules are not up to date", zap.Error(err))
			}
			return err
		})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if _, err := addr.Follow(ctx, addr.Options{OnChange: s.SetLocal, Logger: log}); err != nil {
		return fmt.Errorf("addresses of this host: %w", err)
	}
	var running sync.WaitGroup
	var sourceErr error
	running.Go(func() { sourceErr = s.Run(ctx); stop() })
	defer running.Wait()
	if err := s.Ready(ctx); err != nil && ctx.Err() == nil {
		stop()
		return err
	}
	running.Go(func() { trigger(ctx, s, runner) })
	runner.Run(ctx)
	stop()
	running.Wait()
	return sourceErr
}

// bound puts the address that the user gave for this node in place of the one
// of its family that the Node object has, and makes its family the primary one.
func bound(n model.Node, a netip.Addr) model.Node {
	if !a.IsValid() || a.IsUnspecified() {
		return n
	}
	same := func(o netip.Addr) bool { return model.FamilyOf(o) == model.FamilyOf(a) }
	n.Addresses = append([]netip.Addr{a}, slices.DeleteFunc(slices.Clone(n.Addresses), same)...)
	return n
}

// retryAfter is how soon a failed synchronisation is repeated, at first.
const retryAfter = time.Second

// trigger asks for a run whenever there is something new.
func trigger(ctx context.Context, s *watch.Source, runner *pace.Runner) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.Changed():
			runner.Trigger()
		}
	}
}
