package configuration

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/nlproxy/nlproxy/integration/daemon"
)

// written returns what a program writes to --write-config-to, and how it ends.
func written(t *testing.T, program string, args ...string) (string, ended) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "written.yaml")
	end := run(t, program, append(args, "--write-config-to="+path)...)
	content, err := os.ReadFile(path)
	if err != nil && end.code == 0 {
		t.Fatalf("%s %s wrote nothing: %s", program, args, end.errors)
	}
	return string(content), end
}

// checkSameWritten fails t unless nlproxy and kube-proxy write the same bytes,
// and returns how nlproxy ended.
func checkSameWritten(t *testing.T, args ...string) ended {
	t.Helper()
	theirs, end := written(t, kubeProxy(t), args...)
	if end.code != 0 {
		t.Errorf("kube-proxy %s: %s", args, end.errors)
	}
	ours, end := written(t, daemon.Binary(t), args...)
	if end.code != 0 {
		t.Errorf("nlproxy %s: %s", args, end.errors)
	}
	if d := cmp.Diff(theirs, ours); d != "" {
		t.Errorf("%s: written by kube-proxy (-), by nlproxy (+):\n%s", args, d)
	}
	return end
}

func TestDefaultsAreWrittenAsKubeProxyWritesThem(t *testing.T) {
	checkSameWritten(t)
	checkSameWritten(t, "--config="+file(t, Header))
}

// versionless settings are refused by the kube-proxy of the tests, which is
// built from a module and knows no version that came before its own.
var versionless = []string{"showHiddenMetricsForVersion", "show-hidden-metrics-for-version"}

// commands are flags that make it write no configuration, or another one, and
// whose effect the tests of package config show.
var commands = []string{"config", "write-config-to"}

func TestEveryFieldIsWrittenAsKubeProxyWritesIt(t *testing.T) {
	for _, s := range Fields() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			content, _ := s.Files()
			path := file(t, content)
			if s.Outcome == Refused {
				checkRefused(t, s.Name, "--config="+path)
				return
			}
			if slices.Contains(versionless, s.Name) {
				return
			}
			end := checkSameWritten(t, "--config="+path)
			if noted := strings.Contains(end.errors, s.Name+": "); noted != (s.Outcome == Noted) {
				t.Errorf("noted: %t; %s", noted, end.errors)
			}
		})
	}
}

func TestEveryFlagIsWrittenAsKubeProxyWritesIt(t *testing.T) {
	for _, s := range Flags() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			args, _ := s.Args()
			if s.Outcome == Refused {
				checkRefused(t, "--"+s.Name, args...)
				return
			}
			if slices.Contains(slices.Concat(versionless, commands), s.Name) {
				return
			}
			end := checkSameWritten(t, args...)
			if noted := strings.Contains(end.errors, "--"+s.Name+": "); noted != (s.Outcome == Noted) {
				t.Errorf("noted: %t; %s", noted, end.errors)
			}
		})
	}
}

// Flags that count beside a file do so in the same way.
func TestFlagsBesideAFileAreWrittenAsKubeProxyWritesThem(t *testing.T) {
	path := file(t, Header+"hostnameOverride: of-file\nbindAddress: 192.0.2.1\nlogging: {verbosity: 1, vmodule: [{filePattern: a, verbosity: 1}]}\n")
	checkSameWritten(t, "--config="+path, "--hostname-override=Of-Flag", "--v=2", "--vmodule=b=2,c=3", "--log-flush-frequency=1m",
		"--bind-address=192.0.2.2", "--cluster-cidr=10.0.0.0/8", "--iptables-masquerade-bit=3")
}

func checkRefused(t *testing.T, name string, args ...string) {
	t.Helper()
	content, end := written(t, daemon.Binary(t), args...)
	if end.code != 1 || content != "" || strings.Count(end.errors, "\n") != 1 || !strings.Contains(end.errors, name+": ") {
		t.Errorf("code %d, written %q: %s", end.code, content, end.errors)
	}
}

// A file that is not quite right is read as kube-proxy reads it, and what is
// not read is noted.
func TestLenientFilesAreReadAsKubeProxyReadsThem(t *testing.T) {
	for _, f := range []struct{ fields, note string }{
		{"foo: 1", "config.yaml:3: foo: "},
		{"foo: {bar: [x, {masqueradeBit: many}]}", "config.yaml:3: foo: "},
		{"iptables:\n  masqueradebit: 3", "config.yaml:4: iptables.masqueradebit: "},
		{"Mode: nftables", "config.yaml:3: Mode: "},
		{"oomScoreAdj: 1\noomScoreAdj: 2", "config.yaml:4: oomScoreAdj: "},
		{"oomScoreAdj: many\noomScoreAdj: 2", "config.yaml:4: oomScoreAdj: "},
		{"logging: {vmodule: [{filePattern: a, verbosity: 1, x: 1}]}", "config.yaml:3: logging.vmodule[0].x: "},
		{"oomScoreAdj: 1\n---\noomScoreAdj: 2", "config.yaml:5: a second document: "},
		{"oomScoreAdj: 3.0", ""},
		{"iptables: null\nconntrack: {min: null}\nnodePortAddresses: []", ""},
		{"<<: {oomScoreAdj: 4}", ""},
		{"iptables: &same {masqueradeBit: 3}\nnftables: {<<: *same, masqueradeBit: 14}", ""},
	} {
		end := checkSameWritten(t, "--config="+file(t, Header+f.fields+"\n"))
		if !strings.Contains(end.errors, f.note) || f.note == "" && strings.Contains(end.errors, "config.yaml:") {
			t.Errorf("%s: want a note %q: %s", f.fields, f.note, end.errors)
		}
	}
}

func TestOtherFilesAreRefusedAsKubeProxyRefusesThem(t *testing.T) {
	for _, content := range []string{
		"",
		"# nothing",
		"- a",
		"a: b: c",
		"kind: KubeProxyConfiguration",
		strings.Replace(Header, "v1alpha1", "v1beta1", 1),
		strings.Replace(Header, "KubeProxy", "Kubelet", 1),
		"---\n---\n" + Header,
	} {
		path := "--config=" + file(t, content)
		if _, end := written(t, kubeProxy(t), path); end.code == 0 {
			t.Errorf("%q: kube-proxy accepts it", content)
		}
		if got, end := written(t, daemon.Binary(t), path); end.code != 1 || got != "" || !strings.Contains(end.errors, path[len("--config="):]) {
			t.Errorf("%q: code %d, written %q: %s", content, end.code, got, end.errors)
		}
	}
}

// What kube-proxy writes is accepted without a word, and has no field that the
// tables do not have.
func TestFileThatKubeProxyWroteIsAccepted(t *testing.T) {
	theirs, _ := written(t, kubeProxy(t))
	ours, end := written(t, daemon.Binary(t), "--config="+file(t, theirs))
	if strings.Contains(end.errors, "config.yaml") {
		t.Errorf("noted: %s", end.errors)
	}
	if d := cmp.Diff(theirs, ours); d != "" {
		t.Errorf("read (-), written (+):\n%s", d)
	}
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(theirs), &fields); err != nil {
		t.Fatal(err)
	}
	for _, path := range leaves("", fields) {
		if !slices.Contains(Paths(), path) {
			t.Errorf("%s: not in the published type", path)
		}
	}
}

// leaves are the paths of what is no mapping.
func leaves(prefix string, fields map[string]any) (all []string) {
	for name, value := range fields {
		if section, ok := value.(map[string]any); ok {
			all = append(all, leaves(prefix+name+".", section)...)
			continue
		}
		all = append(all, prefix+name)
	}
	return all
}

func TestVersionIsPrinted(t *testing.T) {
	for _, arg := range []string{"--version", "--version=true", "--version=raw"} {
		theirs, ours := run(t, kubeProxy(t), arg), run(t, daemon.Binary(t), arg)
		if theirs.code != 0 || ours.code != 0 || ours.out == "" || strings.Count(theirs.out, "\n") != strings.Count(ours.out, "\n") {
			t.Errorf("%s: kube-proxy %+v, nlproxy %+v", arg, theirs, ours)
		}
	}
	for _, arg := range []string{"--version=foo", "--version=v1.2.3"} {
		theirs, ours := run(t, kubeProxy(t), arg), run(t, daemon.Binary(t), arg)
		if theirs.code == 0 || ours.code != 1 || !strings.Contains(ours.errors, "--version") {
			t.Errorf("%s: kube-proxy %+v, nlproxy %+v", arg, theirs, ours)
		}
	}
}
