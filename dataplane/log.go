package dataplane

import (
	"maps"
	"slices"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"go.uber.org/zap"
)

// namedChanges is how many services a line of the log names at most.
const namedChanges = 5

// log says what was done, in one line unless services disagree.
func (d *Dataplane) log(r Report, changed map[model.Name]struct{}) {
	for _, c := range r.Conflicts {
		d.opts.Logger.Warn("two services claim a frontend", zap.Stringer("conflict", c))
	}
	if r.Err != nil {
		return // which the caller logs
	}
	fields := []zap.Field{
		zap.Int("services", r.Services), zap.Int("planned", r.Planned), zap.Bool("full", r.Full),
		zap.Int("transactions", r.Transactions), zap.Int("operations", r.Operations),
		zap.Int("bytes", r.Bytes), zap.Int("aside", len(r.Aside)),
		zap.Duration("kernel", r.Kernel), zap.Duration("elapsed", r.Duration),
	}
	if n := len(changed); n > 0 && n <= namedChanges {
		fields = append(fields, zap.Stringers("changed", slices.SortedFunc(maps.Keys(changed), model.Name.Compare)))
	}
	level := zap.DebugLevel
	if r.Full || r.Planned > 0 || r.Operations > 0 {
		level = zap.InfoLevel
	}
	d.opts.Logger.Log(level, "synchronised", fields...)
}
