package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/kube-proxy/config/v1alpha1"
)

// Flags holds the flags of one command line.
type Flags struct {
	set  *pflag.FlagSet
	into settings
}

// Bind defines the flags on fs, which must have none of their names yet.
// Config is to be called after fs has parsed its arguments. As with
// kube-proxy, a name may be written with underscores for hyphens.
func Bind(fs *pflag.FlagSet) *Flags {
	f := &Flags{set: fs, into: newSettings()}
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	bind(fs, &f.into)
	return f
}

func bind(fs *pflag.FlagSet, s *settings) {
	for _, f := range flags() {
		switch at := f.at(s).(type) {
		case *string:
			fs.StringVar(at, f.name, *at, f.usage)
		case *bool:
			fs.BoolVar(at, f.name, *at, f.usage)
		case *int32:
			fs.Int32Var(at, f.name, *at, f.usage)
		case *float32:
			fs.Float32Var(at, f.name, *at, f.usage)
		case *time.Duration:
			fs.DurationVar(at, f.name, *at, f.usage)
		case *[]string:
			fs.StringSliceVar(at, f.name, *at, f.usage)
		case pflag.Value:
			fs.VarP(at, f.name, shorthand(f.name), f.usage)
		}
	}
}

// shorthand makes "-v" of "v".
func shorthand(name string) string {
	if len(name) > 1 {
		return ""
	}
	return name
}

// Config returns what the flags say or, with --config, what the file says,
// which read returns the content of. Of the other flags only those without a
// field, and those that kube-proxy lets override a file, count beside a file.
// It may be called again when the file has changed.
//
// Notes are one line each, to be logged. The error holds one line for every
// problem.
func (f *Flags) Config(read func(name string) ([]byte, error)) (c Config, notes []string, err error) {
	notes = f.unheeded()
	var more []string
	if f.into.config == "" {
		c, more, err = f.fromFlags()
	} else {
		c, more, err = f.fromFile(read)
	}
	c.File, c.WriteConfigTo, c.Cleanup, c.InitOnly = f.into.config, f.into.writeTo, f.into.cleanup, f.into.initOnly
	c.Master, c.Manifests, c.FlowProtocols = f.into.master, f.into.manifests, f.into.flowProtocols
	c.flags = f.values()
	return c, append(notes, more...), errors.Join(err, checkFlowProtocols(c.FlowProtocols), checkMode(f.into.mode))
}

// values returns those of all flags, given or not.
func (f *Flags) values() map[string]string {
	all := map[string]string{}
	f.set.VisitAll(func(flag *pflag.Flag) { all[flag.Name] = flag.Value.String() })
	return all
}

// unheeded returns a note for each flag that was given and does not count.
func (f *Flags) unheeded() (notes []string) {
	for _, row := range flags() {
		switch given := f.given(row.name); {
		case given && row.scope == never:
			notes = append(notes, fmt.Sprintf("--%s: is not read in mode iptables", row.name))
		case given && row.scope == alone && f.into.config != "":
			notes = append(notes, fmt.Sprintf("--%s: is ignored beside --config", row.name))
		}
	}
	return notes
}

func (f *Flags) given(name string) bool { return f.set.Lookup(name).Changed }

// checkFlowProtocols is an error for each that is none.
func checkFlowProtocols(names []string) error {
	var errs []error
	for _, name := range names {
		if name != "udp" && name != "sctp" && name != "tcp" {
			errs = append(errs, fmt.Errorf("--nl-flow-protocols: %q: must be of udp, sctp, tcp", name))
		}
	}
	return errors.Join(errs...)
}

// checkMode is an error if a mode was chosen that is none to choose.
func checkMode(chosen string) error {
	if chosen != "" && chosen != string(ModeIPTables) {
		return fmt.Errorf("--nl-mode: %q: must be iptables, or empty for the mode of the configuration", chosen)
	}
	return nil
}

// chooseMode has o served in the mode of --nl-mode. In mode nftables node ports
// are by default on the node's own addresses alone (platformApplyDefaults in
// cmd/kube-proxy/app/server_linux.go, 1.37), and so they stay.
func (f *Flags) chooseMode(o *v1alpha1.KubeProxyConfiguration) {
	if f.into.mode != string(ModeIPTables) {
		return
	}
	if o.Mode == "nftables" && len(o.NodePortAddresses) == 0 {
		o.NodePortAddresses = []string{"primary"}
	}
	o.Mode = v1alpha1.ProxyMode(ModeIPTables)
}

func (f *Flags) fromFlags() (Config, []string, error) {
	var found findings
	o := f.into.KubeProxyConfiguration
	f.setPorts(&o, &found)
	setLateDefaults(&o)
	f.chooseMode(&o)
	c := check(&o, &found)
	return c, origin{}.print(found.noted), origin{}.errors(found.refused)
}

// setPorts heeds the flags for ports alone, which kube-proxy does not where it
// writes the configuration (Complete in cmd/kube-proxy/app/options.go, 1.37).
func (f *Flags) setPorts(o *v1alpha1.KubeProxyConfiguration, found *findings) {
	for _, p := range []struct {
		flag, other string
		port        int32
		at          *string
	}{
		{"healthz-port", "healthz-bind-address", f.into.healthzPort, &o.HealthzBindAddress},
		{"metrics-port", "metrics-bind-address", f.into.metricsPort, &o.MetricsBindAddress},
	} {
		bare := *p.at
		switch given := f.given(p.flag) && f.into.writeTo == ""; {
		case given && p.port == 0:
			*p.at = ""
		case given:
			*p.at = withPort(bare, int(p.port))
			if *p.at == bare {
				found.note("--"+p.flag, "has no effect: the address of --%s has a port", p.other)
			}
		}
	}
}

func (f *Flags) fromFile(read func(string) ([]byte, error)) (Config, []string, error) {
	data, err := read(f.into.config)
	if err != nil {
		return Config{}, nil, fmt.Errorf("read --config: %w", err)
	}
	var found findings
	o, lines, err := decode(data, &found)
	if err != nil {
		return Config{}, nil, fmt.Errorf("%s: %w", f.into.config, err)
	}
	from := origin{file: f.into.config, lines: lines}
	setDefaults(&o)
	dropSplitStream(&o.Logging.Options, &found)
	checkVModule(o.Logging.VModule, &found)
	from.flags = f.override(&o, &found)
	f.chooseMode(&o)
	c := check(&o, &found)
	return c, from.print(found.noted), from.errors(found.refused)
}

// override copies to o the flags that count over a file, and returns the fields
// that they set. Of vmodule, those of the file come after those of the flag.
func (f *Flags) override(o *v1alpha1.KubeProxyConfiguration, found *findings) (fields map[string]bool) {
	file := settings{KubeProxyConfiguration: *o}
	file.Logging.VModule = nil
	copies := pflag.NewFlagSet("", pflag.ContinueOnError)
	bind(copies, &file)
	fields = map[string]bool{}
	for _, row := range flags() {
		given := f.set.Lookup(row.name)
		if row.scope != over || !given.Changed || given.Value.String() == "" {
			continue
		}
		fields[row.field] = true
		// Cannot fail: the value is one that a flag of the same type gave.
		if err := copies.Set(row.name, given.Value.String()); err != nil {
			found.refuse(row.field, "%v", err)
		}
	}
	file.Logging.VModule = append(file.Logging.VModule, o.Logging.VModule...)
	*o = file.KubeProxyConfiguration
	return fields
}
