package logs

import (
	"path"
	"strings"
	"sync/atomic"

	"go.uber.org/zap/zapcore"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
)

// verbosity says which entries are logged. Those of a level that zap has no
// name for, below debug, come from klog: level -N stands for verbosity N, as
// debug does for 1.
type verbosity struct {
	general atomic.Int64
	modules []config.VModule
	// highest is the highest verbosity of a module.
	highest int
}

func newVerbosity(general int, modules []config.VModule) *verbosity {
	v := &verbosity{modules: modules}
	v.general.Store(int64(general))
	for _, m := range modules {
		v.highest = max(v.highest, m.Verbosity)
	}
	return v
}

// Enabled reports whether an entry may be logged, as zapcore.LevelEnabler has
// it: whether it is depends on its file, too.
func (v *verbosity) Enabled(at zapcore.Level) bool {
	needed := -int(at)
	return needed <= v.highest || v.enabledEverywhere(at)
}

func (v *verbosity) enabledEverywhere(at zapcore.Level) bool {
	return at >= zapcore.InfoLevel || -int64(at) <= v.general.Load()
}

// enabledIn reports whether an entry from a source file is logged. The first
// pattern that matches counts, and one that is malformed matches nothing, as
// with klog.
func (v *verbosity) enabledIn(file string, at zapcore.Level) bool {
	if v.enabledEverywhere(at) {
		return true
	}
	name := strings.TrimSuffix(path.Base(file), ".go")
	for _, m := range v.modules {
		if ok, _ := path.Match(m.FilePattern, name); ok {
			return -int(at) <= m.Verbosity
		}
	}
	return false
}

// core returns c, or one that asks for the file first if that matters.
func (v *verbosity) core(c zapcore.Core) zapcore.Core {
	if len(v.modules) == 0 {
		return c
	}
	return byFile{c, v}
}

// byFile writes what the verbosity of its source file admits. zap knows the
// file only when an entry is written.
type byFile struct {
	zapcore.Core
	verbosity *verbosity
}

// With implements zapcore.Core.
func (c byFile) With(fields []zapcore.Field) zapcore.Core {
	return byFile{c.Core.With(fields), c.verbosity}
}

// Check implements zapcore.Core.
func (c byFile) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return to
}

// Write implements zapcore.Core.
func (c byFile) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if !c.verbosity.enabledIn(e.Caller.File, e.Level) {
		return nil
	}
	return c.Core.Write(e, fields)
}

// belowWarning is what goes to a stream of information.
type belowWarning struct{ *verbosity }

// Enabled implements zapcore.LevelEnabler.
func (b belowWarning) Enabled(at zapcore.Level) bool {
	return at < zapcore.WarnLevel && b.verbosity.Enabled(at)
}
