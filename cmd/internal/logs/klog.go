package logs

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

// Klog is what klog logs to, which client-go logs to. It is one for the whole
// process, while one Logs may take the place of another.
type Klog struct {
	flags *flag.FlagSet
	to    atomic.Pointer[zap.Logger]
}

// CaptureKlog makes klog log to what the result is given, and to nothing until
// then. It is called once, before anything logs to klog.
func CaptureKlog() *Klog {
	k := &Klog{flags: flag.NewFlagSet("klog", flag.ContinueOnError)}
	klog.InitFlags(k.flags)
	k.to.Store(zap.NewNop())
	klog.SetLogger(zapr.NewLogger(zap.New(switching{k, nil}, zap.AddCaller())))
	return k
}

// To makes klog log to l from now on, with the same verbosity and vmodule.
func (k *Klog) To(l *Logs) error {
	var modules []string
	for _, m := range l.verbosity.modules {
		modules = append(modules, fmt.Sprintf("%s=%d", m.FilePattern, m.Verbosity))
	}
	if err := k.flags.Set("vmodule", strings.Join(modules, ",")); err != nil {
		return err
	}
	l.klog = k.flags
	k.to.Store(l.logger)
	return l.SetVerbosity(strconv.FormatInt(l.verbosity.general.Load(), 10))
}

// switching is the core of whatever logger klog logs to at the time.
type switching struct {
	klog   *Klog
	fields []zapcore.Field
}

func (s switching) core() zapcore.Core { return s.klog.to.Load().Core() }

// Enabled, With, Check, Write and Sync are those of zapcore.Core.
func (s switching) Enabled(at zapcore.Level) bool { return s.core().Enabled(at) }

func (s switching) With(fields []zapcore.Field) zapcore.Core {
	return switching{s.klog, append(s.fields[:len(s.fields):len(s.fields)], fields...)}
}

func (s switching) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	e.LoggerName = strings.TrimSuffix("klog."+e.LoggerName, ".")
	return s.core().With(s.fields).Check(e, to)
}

func (s switching) Write(e zapcore.Entry, fields []zapcore.Field) error {
	return s.core().With(s.fields).Write(e, fields)
}

func (s switching) Sync() error { return s.core().Sync() }
