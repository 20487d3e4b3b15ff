package main

import (
	"context"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/nlproxy/nlproxy/cmd/internal/events"
	"github.com/nlproxy/nlproxy/conntrack"
	"go.uber.org/zap"
)

// newEvents returns the recorder of this node; nil, which records nothing, if
// no API server is followed.
func newEvents(c config.Config, log *zap.Logger) (*events.Recorder, error) {
	if c.Manifests != "" {
		return nil, nil
	}
	client, err := clientConfig(c)
	if err != nil {
		return nil, err
	}
	o, err := sourceOptions(c, nil)
	if err != nil {
		return nil, err
	}
	return events.New(client, o.NodeName, events.Options{Logger: log})
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
