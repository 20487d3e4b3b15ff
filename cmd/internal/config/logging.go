package config

import (
	"math"
	"strings"

	logsapi "k8s.io/component-base/logs/api/v1"
)

// maxBuffer is the most bytes of a buffer (k8s.io/component-base/logs/json).
const maxBuffer = 2 << 30

// checkLogging refuses what kube-proxy refuses (Validate in
// k8s.io/component-base/logs/api/v1). on has the values of the feature gates.
func checkLogging(l *logsapi.LoggingConfiguration, on map[string]bool, fs *findings) Logging {
	routing := l.Options.Text.OutputRoutingOptions
	switch {
	case l.Format == "json" && !on[loggingBetaOptions]:
		fs.refuse("logging.format", "json: must be text unless the feature gate %s is on", loggingBetaOptions)
	case l.Format == "json":
		routing = l.Options.JSON.OutputRoutingOptions
	case l.Format != "text":
		fs.refuse("logging.format", "%q: must be text or json", l.Format)
	}
	checkRouting("logging.options.text", l.Options.Text.OutputRoutingOptions, on, fs)
	checkRouting("logging.options.json", l.Options.JSON.OutputRoutingOptions, on, fs)
	if len(l.VModule) > 0 && l.Format != "text" {
		fs.refuse("logging.vmodule", "%s: must be empty unless logging.format is text", logsapi.VModuleConfigurationPflag(&l.VModule))
	}
	return logging(l, routing)
}

func checkRouting(field string, r logsapi.OutputRoutingOptions, on map[string]bool, fs *findings) {
	if on[loggingAlphaOptions] {
		return
	}
	if r.SplitStream {
		fs.refuse(field+".splitStream", "true: must be false unless the feature gate %s is on", loggingAlphaOptions)
	}
	if r.InfoBufferSize.Value() != 0 {
		fs.refuse(field+".infoBufferSize", "%s: must be 0 unless the feature gate %s is on", &r.InfoBufferSize, loggingAlphaOptions)
	}
}

// dropSplitStream forgets that a file asks for streams of their own, as
// kube-proxy does: the flags for that set the field to their default (AddFlags
// in k8s.io/component-base/logs/api/v1, called by copyLogsFromFlags in
// cmd/kube-proxy/app of 1.37).
func dropSplitStream(o *logsapi.FormatOptions, fs *findings) {
	for _, format := range []struct {
		name string
		at   *bool
	}{{"text", &o.Text.SplitStream}, {"json", &o.JSON.SplitStream}} {
		if *format.at {
			fs.note("logging.options."+format.name+".splitStream", "has no effect in a file: --log-%s-split-stream has", format.name)
		}
		*format.at = false
	}
}

// checkVModule refuses items of a file; a flag takes only good ones.
func checkVModule(items logsapi.VModuleConfiguration, fs *findings) {
	for i, item := range items {
		field := element("logging.vmodule", i)
		if item.FilePattern == "" || strings.ContainsAny(item.FilePattern, "=,") {
			fs.refuse(field+".filePattern", "%q: must be a pattern without = and comma", item.FilePattern)
		}
		if item.Verbosity > math.MaxInt32 {
			fs.refuse(field+".verbosity", "%d: must be from 0 to %d", item.Verbosity, math.MaxInt32)
		}
	}
}

func logging(l *logsapi.LoggingConfiguration, r logsapi.OutputRoutingOptions) Logging {
	made := Logging{
		Format:         l.Format,
		Verbosity:      int(l.Verbosity),
		FlushFrequency: l.FlushFrequency.Duration.Duration,
		SplitStream:    r.SplitStream,
		InfoBufferSize: min(max(r.InfoBufferSize.Value(), 0), maxBuffer),
	}
	for _, item := range l.VModule {
		made.VModule = append(made.VModule, VModule{FilePattern: item.FilePattern, Verbosity: int(item.Verbosity)})
	}
	return made
}
