package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/kube-proxy/config/v1alpha1"

	"github.com/nlproxy/nlproxy/integration/configuration"
)

// outcome is what became of a setting.
type outcome struct {
	config Config
	notes  []string
	err    error
}

// effect is c without what is for show.
func effect(c Config) Config {
	c.published, c.flags = v1alpha1.KubeProxyConfiguration{}, nil
	return c
}

// checkOutcome fails t unless a setting does what is said of it. name is how
// notes and errors name it.
func checkOutcome(t *testing.T, s configuration.Setting, name string, with, without outcome) {
	t.Helper()
	if without.err != nil || len(without.notes) > 0 {
		t.Errorf("%s: without it: notes %q, error %v", name, without.notes, without.err)
	}
	with.config, without.config = effect(with.config), effect(without.config)
	refused := with.err != nil && strings.Contains(with.err.Error(), name+": ") && len(lines(with.err)) == 1
	noted := len(with.notes) == 1 && strings.Contains(with.notes[0], name+": ")
	differs := !reflect.DeepEqual(with.config, without.config)
	for _, does := range []struct {
		what      string
		got, want bool
	}{
		{"is refused", refused, s.Outcome == configuration.Refused},
		{"is an error", with.err != nil, s.Outcome == configuration.Refused},
		{"is noted", noted, s.Outcome == configuration.Noted},
		{"is in a note", len(with.notes) > 0, s.Outcome == configuration.Noted},
		{"has an effect", differs && with.err == nil, s.Outcome == configuration.Honoured},
	} {
		if does.got != does.want {
			t.Errorf("%s: %s: %t, want %t; notes %q, error %v", name, does.what, does.got, does.want, with.notes, with.err)
		}
	}
}

func TestEveryFieldIsHonouredOrNamed(t *testing.T) {
	var have []string
	for _, s := range configuration.Fields() {
		have = append(have, s.Name)
		var with, without outcome
		file, other := s.Files()
		with.config, with.notes, with.err = fromFile(t, file)
		without.config, without.notes, without.err = fromFile(t, other)
		checkOutcome(t, s, s.Name, with, without)
	}
	for _, path := range configuration.Paths() {
		if !slices.Contains(have, path) && path != "kind" && path != "apiVersion" {
			t.Errorf("%s: no setting of this field", path)
		}
	}
}

func TestEveryFlagIsHonouredOrNamed(t *testing.T) {
	own := []string{"manifests"}
	var have []string
	for _, s := range configuration.Flags() {
		have = append(have, s.Name)
		var with, without outcome
		args, other := s.Args()
		with.config, with.notes, with.err = fromArgs(t, configuration.Header, args...)
		without.config, without.notes, without.err = fromArgs(t, "", other...)
		checkOutcome(t, s, "--"+s.Name, with, without)
	}
	for _, f := range flags() {
		if !slices.Contains(have, f.name) && !slices.Contains(own, f.name) && !strings.HasPrefix(f.name, "nl-") {
			t.Errorf("--%s: no setting of this flag", f.name)
		}
	}
}

// Beside a file, a flag counts or is noted.
func TestEveryFlagBesideAFileIsHonouredOrNamed(t *testing.T) {
	for _, s := range configuration.Flags() {
		if s.Name == "config" {
			continue
		}
		args, _ := s.Args()
		got, notes, err := fromArgs(t, configuration.Header, append(args, "--config=c.yaml")...)
		if err != nil && !strings.Contains(s.Beside, "feature-gates") {
			t.Errorf("--%s: %v", s.Name, err)
		}
		plain, _, plainErr := fromFile(t, configuration.Header)
		noted := slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, "--"+s.Name+": ") })
		if differs := !reflect.DeepEqual(effect(got), effect(plain)) || err != nil; differs == noted || plainErr != nil {
			t.Errorf("--%s: has an effect: %t, is noted: %t; notes %q, error %v", s.Name, differs, noted, notes, err)
		}
	}
}
