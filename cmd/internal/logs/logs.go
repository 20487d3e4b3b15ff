package logs

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
)

// Options say how to log.
type Options struct {
	// Logging is that of a Config without an error.
	config.Logging
	// Stdout and Stderr are those of the process if nil. Each is written to
	// by one goroutine at a time.
	Stdout, Stderr io.Writer
}

// Logs is what the process logs with.
type Logs struct {
	logger    *zap.Logger
	verbosity *verbosity
	// buffer gathers entries for standard output; nil without one.
	buffer *zapcore.BufferedWriteSyncer
	// klog are the flags of klog where it logs here; nil where it does not.
	klog *flag.FlagSet
}

// New returns Logs. A format is text, if it is empty, or json.
func New(o Options) (*Logs, error) {
	encode, err := encoder(o.Format)
	if err != nil {
		return nil, err
	}
	l := &Logs{verbosity: newVerbosity(o.Verbosity, o.VModule)}
	stderr := locked(cmp.Or[io.Writer](o.Stderr, os.Stderr))
	core := l.verbosity.core(zapcore.NewCore(encode, stderr, l.verbosity))
	if o.SplitStream {
		core = zapcore.NewTee(
			zapcore.NewCore(encode, stderr, zapcore.WarnLevel),
			l.verbosity.core(zapcore.NewCore(encode, l.stdout(o), belowWarning{l.verbosity})))
	}
	l.logger = zap.New(core, zap.ErrorOutput(stderr), zap.WithCaller(len(o.VModule) > 0))
	return l, nil
}

// stdout is where information goes in a stream of its own.
func (l *Logs) stdout(o Options) zapcore.WriteSyncer {
	stdout := locked(cmp.Or[io.Writer](o.Stdout, os.Stdout))
	if o.InfoBufferSize == 0 {
		return stdout
	}
	l.buffer = &zapcore.BufferedWriteSyncer{WS: stdout, Size: int(o.InfoBufferSize), FlushInterval: o.FlushFrequency}
	return l.buffer
}

// locked is a writer for any goroutine. An entry is out when it is written, so
// that there is nothing that Sync would have to bring to a disk.
func locked(w io.Writer) zapcore.WriteSyncer {
	return zapcore.Lock(zapcore.AddSync(struct{ io.Writer }{w}))
}

// Logger logs to these Logs.
func (l *Logs) Logger() *zap.Logger { return l.logger }

// SetVerbosity sets the general verbosity to a number from 0 to 2147483647.
func (l *Logs) SetVerbosity(text string) error {
	v, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return fmt.Errorf("verbosity %q: must be from 0 to 2147483647", text)
	}
	l.verbosity.general.Store(int64(v))
	if l.klog != nil {
		return l.klog.Set("v", text)
	}
	return nil
}

// Sync writes what a buffer holds.
func (l *Logs) Sync() error {
	if l.buffer == nil {
		return nil
	}
	return l.buffer.Sync()
}

// Close writes what a buffer holds, and flushes it no more by itself. It is to be
// called when nothing logs here any longer, at the latest before the process
// ends.
func (l *Logs) Close() error {
	if l.buffer == nil {
		return nil
	}
	return l.buffer.Stop()
}

// encoder returns how an entry is written. The place of a call is known only
// for vmodule, and not written.
func encoder(format string) (zapcore.Encoder, error) {
	c := zap.NewProductionEncoderConfig()
	c.CallerKey, c.StacktraceKey = zapcore.OmitKey, zapcore.OmitKey
	c.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	c.EncodeDuration = zapcore.StringDurationEncoder
	c.EncodeLevel = func(at zapcore.Level, to zapcore.PrimitiveArrayEncoder) {
		to.AppendString(max(at, zapcore.DebugLevel).String())
	}
	switch format {
	case "", "text":
		return zapcore.NewConsoleEncoder(c), nil
	case "json":
		return zapcore.NewJSONEncoder(c), nil
	}
	return nil, fmt.Errorf("logging.format: %q: must be text or json", format)
}
