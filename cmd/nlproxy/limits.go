package main

import (
	"os"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/nlproxy/nlproxy/conntrack"
	"go.uber.org/zap"
)

// newLimits returns what gives the kernel's connection tracking the settings
// of the configuration.
func newLimits(c config.Config, log *zap.Logger) (*conntrack.Applier, error) {
	return conntrack.NewApplier(conntrack.ApplierOptions{
		Limits: conntrack.Limits(c.Conntrack),
		Cores:  conntrack.Cores(os.DirFS("/sys")),
		Logger: log,
	})
}
