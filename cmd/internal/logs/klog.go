package logs

import (
	"flag"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-logr/zapr"
	"k8s.io/klog/v2"
)

// CaptureKlog makes klog, to which client-go logs, log here, with the same
// verbosity and vmodule. Klog is one for the whole process, so this is for its
// main Logs, before anything logs to it.
func (l *Logs) CaptureKlog() error {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	var modules []string
	for _, m := range l.verbosity.modules {
		modules = append(modules, fmt.Sprintf("%s=%d", m.FilePattern, m.Verbosity))
	}
	if err := flags.Set("vmodule", strings.Join(modules, ",")); err != nil {
		return err
	}
	l.klog = flags
	klog.SetLogger(zapr.NewLogger(l.logger.Named("klog")))
	return l.SetVerbosity(strconv.FormatInt(l.verbosity.general.Load(), 10))
}
