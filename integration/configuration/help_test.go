package configuration

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/integration/daemon"
)

// A line of help begins with a flag, and its default ends what is said of it,
// which for feature gates takes many lines.
var (
	flagLine    = regexp.MustCompile(`^ +(?:-(\w), )?--([\w-]+)(?: |$)`)
	defaultText = regexp.MustCompile(`\(default (.*)\)$`)
)

// helped is what help says of a flag.
type helped struct{ shorthand, unset string }

func help(t *testing.T, program string) map[string]helped {
	t.Helper()
	end := run(t, program, "--help")
	if end.code != 0 {
		t.Fatalf("%s --help: %s", program, end.errors)
	}
	flags := map[string]helped{}
	for line := range strings.Lines(end.out) {
		line = strings.TrimRight(line, "\n")
		if m := flagLine.FindStringSubmatch(line); m != nil {
			flags[m[2]] = helped{shorthand: m[1], unset: defaultText.FindString(line)}
		}
	}
	return flags
}

func TestFlagsAndTheirDefaultsAreKubeProxys(t *testing.T) {
	theirs, ours := help(t, kubeProxy(t)), help(t, daemon.Binary(t))
	if len(theirs) < 50 {
		t.Errorf("only %d flags found in the help of kube-proxy", len(theirs))
	}
	for name, want := range theirs {
		got, ok := ours[name]
		switch {
		case !ok:
			t.Errorf("--%s: there is no such flag", name)
		case got != want:
			t.Errorf("--%s: %+v, kube-proxy has %+v", name, got, want)
		}
	}
}

// What is tried of each flag is in the table.
func TestTableHasEveryFlagOfKubeProxy(t *testing.T) {
	theirs := help(t, kubeProxy(t))
	listed := []string{"help", "version"}
	for _, s := range Flags() {
		listed = append(listed, s.Name)
	}
	for name := range theirs {
		if !slices.Contains(listed, name) {
			t.Errorf("--%s: not in the table", name)
		}
	}
	for _, name := range listed {
		// Deprecated flags are not in the help.
		if _, ok := theirs[name]; !ok && name != "healthz-port" && name != "metrics-port" {
			t.Errorf("--%s: kube-proxy has no such flag", name)
		}
	}
}
