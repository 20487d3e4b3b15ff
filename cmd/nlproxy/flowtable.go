package main

import (
	"context"
	"fmt"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/nlproxy/nlproxy/cmd/internal/events"
	"github.com/nlproxy/nlproxy/conntrack"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"go.uber.org/zap"
)

// flowProtocols says in model's words what the configuration says.
var flowProtocols = map[string]model.Protocol{"udp": model.UDP, "sctp": model.SCTP, "tcp": model.TCP}

// flows is the table of flows and what deletes those that lead nowhere.
type flows struct {
	table   *conntrack.Table
	cleaner *conntrack.Cleaner
}

func newFlows(c config.Config, observe func(conntrack.Pass), log *zap.Logger) (flows, error) {
	table, err := conntrack.Dial()
	if err != nil {
		return flows{}, fmt.Errorf("table of flows: %w", err)
	}
	var protocols []model.Protocol
	for _, name := range c.FlowProtocols {
		protocols = append(protocols, flowProtocols[name])
	}
	cleaner, err := conntrack.NewCleaner(conntrack.CleanerOptions{Flows: table, Protocols: protocols, Logger: log, Observer: observe})
	return flows{table, cleaner}, err
}

// watchFull warns when connection tracking is nearly full, in the log and by an
// event of the node.
func watchFull(ctx context.Context, recorder *events.Recorder, log *zap.Logger) {
	err := conntrack.WatchFull(ctx, conntrack.WatchFullOptions{
		Read:   conntrack.ReadStats,
		Logger: log,
		OnFull: recorder.TableFull,
	})
	if err != nil {
		log.Warn("connection tracking is not watched", zap.Error(err))
	}
}
