package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nlproxy/nlproxy/integration/golden"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"golang.org/x/sys/unix"
)

// execute runs a command of nlproxy in ns and returns what it printed.
func execute(t *testing.T, ns *lab.Namespace, args ...string) (out, complaints string) {
	t.Helper()
	out, complaints, err := attempt(t, ns, args...)
	if err != nil {
		t.Fatalf("nlproxy %s: %v", strings.Join(args, " "), err)
	}
	return out, complaints
}

// attempt is execute of what may fail.
func attempt(t *testing.T, ns *lab.Namespace, args ...string) (out, complaints string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	err = ns.Do(func() error { return cmd.ExecuteContext(t.Context()) })
	return stdout.String(), stderr.String(), err
}

// written puts a case's objects and configuration into files.
func written(t *testing.T, c golden.Case) (manifests, configuration string) {
	t.Helper()
	dir := t.TempDir()
	configuration = filepath.Join(dir, "config.yaml")
	for name, content := range map[string][]byte{"config.yaml": c.Config, "manifests/objects.yaml": c.Objects} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "manifests"), configuration
}

// families splits what is printed into the two programs' shares.
func families(saved string) (v4, v6 string) {
	tables := strings.SplitAfter(saved, "COMMIT\n")
	return tables[0] + tables[1], tables[2] + tables[3]
}

// TestPlanPrintsKubeProxysRuleset needs neither kernel nor tools.
func TestPlanPrintsKubeProxysRuleset(t *testing.T) {
	for _, c := range golden.Cases(t) {
		t.Run(c.Name, func(t *testing.T) {
			manifests, configuration := written(t, c)
			out, complaints := execute(t, labtest.Current(t), "plan", "--manifests", manifests, "--config", configuration)
			if diff := cmp.Diff(c.Want, golden.Normalise(families(out))); diff != "" {
				t.Errorf("ruleset (-kube-proxy +plan):\n%s", diff)
			}
			if complaints != "" {
				t.Errorf("complaints:\n%s", complaints)
			}
		})
	}
}

func TestPlanPrintsTheRestAndFailsWhereAnObjectIsRefused(t *testing.T) {
	manifests := t.TempDir()
	for name, port := range map[string]string{"bad": "70000", "good": "80"} {
		text := `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "` + name + `", "namespace": "default"},
			"spec": {"clusterIP": "10.96.0.1", "ports": [{"port": ` + port + `}]}}`
		if err := os.WriteFile(filepath.Join(manifests, name+".json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, complaints, err := attempt(t, labtest.Current(t), "plan", "--manifests", manifests)
	if err != codeWrong {
		t.Errorf("got %v, want %v", err, codeWrong)
	}
	if !strings.Contains(complaints, "bad.json:1: service default/bad: spec.ports[0].port: ") || !strings.Contains(complaints, "70000") {
		t.Errorf("complaints do not name file, object, field and value:\n%s", complaints)
	}
	if !strings.Contains(out, "default/good has no endpoints") || strings.Contains(out, "default/bad") {
		t.Errorf("not just the other service was planned:\n%s", out)
	}
}

func TestPlanOfOneFileAndTable(t *testing.T) {
	manifests, _ := written(t, golden.Cases(t)[0])
	out, _ := execute(t, labtest.Current(t), "plan", "--manifests", filepath.Join(manifests, "objects.yaml"), "-t", "nat", "-f", "ipv4")
	if !strings.HasPrefix(out, "# IPv4: for iptables-restore\n*nat\n") || strings.Count(out, "COMMIT") != 1 ||
		!strings.Contains(out, "10.96.3.10/32") {
		t.Errorf("printed:\n%s", out)
	}
}

func TestSourcesThatAreNotThere(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"no source of objects: give --kubeconfig":                                         nil,
		"--kubeconfig (clientConnection.kubeconfig): stat /nowhere: no such file":         {"--kubeconfig", "/nowhere"},
		"--kubeconfig (clientConnection.kubeconfig): " + empty + ": no cluster is config": {"--kubeconfig", empty},
		"--manifests: stat /nowhere: no such file":                                        {"--manifests", "/nowhere"},
		"--manifests -: standard input is for the command plan":                           {"--manifests", "-"},
	} {
		cmd := root()
		cmd.SetArgs(append([]string{"run"}, args...))
		if err := labtest.Namespace(t).Do(func() error { return cmd.ExecuteContext(t.Context()) }); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
}

func TestRulesPrintsWhatTheToolsPrint(t *testing.T) {
	ns := golden.Namespace(t)
	labtest.Run(t, ns, "", "iptables-nft", "-t", "nat", "-N", "OTHER")
	c := golden.Cases(t)[7]
	program(t, ns, c)
	ours, _ := execute(t, ns, "rules", "--no-counters")
	if diff := cmp.Diff(c.Want, golden.Normalise(families(ours))); diff != "" {
		t.Errorf("rules (-kube-proxy +printed):\n%s", diff)
	}
	if strings.Contains(ours, "OTHER") {
		t.Error("a chain of others was printed")
	}
	if all, _ := execute(t, ns, "rules", "--all"); !strings.Contains(all, "OTHER") {
		t.Error("--all leaves out a chain of others")
	}
	one, _ := execute(t, ns, "rules", "--table", "nat", "--family", "ipv6")
	if !strings.HasPrefix(one, "# IPv6: for ip6tables-restore\n*nat\n") || strings.Count(one, "COMMIT") != 1 {
		t.Errorf("one table of one family:\n%s", one)
	}
	if !strings.Contains(one, "[0:0] -A") {
		t.Errorf("no counters:\n%s", one)
	}
}

func TestUnknownTablesAndFamiliesAreRefusedByTheirFlag(t *testing.T) {
	for want, args := range map[string][]string{
		`--table "raw": must be nat, filter or mangle`: {"--table", "raw"},
		`--family "ipv5": must be ipv4 or ipv6`:        {"--family", "ipv5", "--table", "raw"},
	} {
		for _, command := range [][]string{{"rules"}, {"plan", "--manifests", "-"}} {
			if _, _, err := attempt(t, labtest.Current(t), append(command, args...)...); err == nil || err.Error() != want {
				t.Errorf("%s %s: got %v", command[0], args, err)
			}
		}
	}
}

func TestCleanupLeavesNothingOfOurs(t *testing.T) {
	ns := golden.Namespace(t)
	before := labtest.Run(t, ns, "", "nft", "list", "ruleset")
	program(t, ns, golden.Cases(t)[15])
	if out, _ := execute(t, ns, "cleanup"); !strings.HasPrefix(out, "removed") {
		t.Errorf("cleanup says %q", out)
	}
	if saved := labtest.Run(t, ns, "", "iptables-nft-save"); strings.Contains(saved, "KUBE-SERVICES") {
		t.Errorf("after cleanup:\n%s", saved)
	}
	left, _ := execute(t, ns, "rules", "--no-counters")
	for _, line := range strings.Split(left, "\n") {
		if strings.HasPrefix(line, "-A") && !strings.Contains(line, "KUBE-FIREWALL") {
			t.Errorf("after cleanup, of what was %q: %s", before, line)
		}
	}
	if out, _ := execute(t, ns, "cleanup"); out != "nothing to remove\n" {
		t.Errorf("a second cleanup says %q", out)
	}
}

func TestRunEndsAtOnceWithoutTheRightToWrite(t *testing.T) {
	cmd := root()
	cmd.SetArgs([]string{"--manifests", t.TempDir()})
	err := labtest.Namespace(t).Do(func() error {
		if err := withoutNetAdmin(); err != nil {
			t.Fatal(err)
		}
		return cmd.ExecuteContext(t.Context())
	})
	if err == nil || !strings.Contains(err.Error(), "CAP_NET_ADMIN") {
		t.Errorf("got %v", err)
	}
}

// withoutNetAdmin takes CAP_NET_ADMIN from the calling thread, which ends with
// what it does in a namespace.
func withoutNetAdmin() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return err
	}
	sets[0].Effective &^= 1 << unix.CAP_NET_ADMIN
	return unix.Capset(&header, &sets[0])
}

func TestFlagsMayBeWrittenWithUnderscoresEverywhere(t *testing.T) {
	for _, command := range [][]string{{}, {"run"}, {"plan"}} {
		cmd := root()
		cmd.SetArgs(append(command, "--cluster_cidr", "10.244.0.0/16", "--manifests", "/nowhere"))
		err := labtest.Namespace(t).Do(func() error { return cmd.ExecuteContext(t.Context()) })
		if err == nil || !strings.HasPrefix(err.Error(), "--manifests") {
			t.Errorf("%v: %v", command, err)
		}
	}
}
