package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/cmd/nlproxy/deploy"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestManifestPrintsOneStream(t *testing.T) {
	out, complaints := execute(t, labtest.Current(t), "manifest", "--image=registry.example.com/nlproxy:v1",
		"--server=https://192.0.2.10:6443", "--cluster-cidr=10.244.0.0/16", "--with-init")
	want, err := deploy.Stream(deploy.Options{Image: "registry.example.com/nlproxy:v1",
		Server: "https://192.0.2.10:6443", ClusterCIDR: "10.244.0.0/16", Init: true})
	if err != nil || out != want || complaints != "" {
		t.Errorf("%v, complaints %q, printed:\n%s", err, complaints, out)
	}
}

func TestManifestSaysThatAServiceIsNeededForTheServicesItself(t *testing.T) {
	for flag, want := range map[string]bool{"--with-init": true, "--server=https://host": false, "--takeover": false} {
		_, complaints := execute(t, labtest.Current(t), "manifest", flag)
		if got := strings.HasPrefix(complaints, "nlproxy: without --server "); got != want || strings.Count(complaints, "\n") > 1 {
			t.Errorf("%s: complaints %q", flag, complaints)
		}
	}
}

func TestManifestWritesABaseOverNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "base")
	if out, _ := execute(t, labtest.Current(t), "manifest", "--takeover", "--output-dir", dir); out != "" {
		t.Errorf("printed:\n%s", out)
	}
	files, err := deploy.Base(deploy.Options{Image: deploy.DefaultImage, Takeover: true}, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if got, err := os.ReadFile(filepath.Join(dir, f.Name)); err != nil || string(got) != f.Content {
			t.Errorf("%s: %v\n%s", f.Name, err, got)
		}
	}
	mine := filepath.Join(dir, "daemonset.yaml")
	if err := os.WriteFile(mine, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "clusterrole.yaml")); err != nil {
		t.Fatal(err)
	}
	cmd := root()
	cmd.SetArgs([]string{"manifest", "--takeover", "--output-dir", dir})
	if err := cmd.Execute(); err == nil || !strings.HasSuffix(err.Error(), "is there already") {
		t.Errorf("over files that are there: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != len(files)-1 {
		t.Errorf("%d files, %v", len(left), err)
	}
}

func TestManifestPrintsWhatIsAroundTheCluster(t *testing.T) {
	for name, want := range map[string]string{
		"dashboard":  deploy.Dashboard,
		"alerts":     deploy.Alerts,
		"systemd":    deploy.Unit,
		"dockerfile": dockerfile,
	} {
		if out, _ := execute(t, labtest.Current(t), "manifest", name); out != want || out == "" {
			t.Errorf("%s printed:\n%s", name, out)
		}
	}
	if out, _ := execute(t, labtest.Current(t), "manifest", "alerts", "--prometheus-rule"); out != deploy.PrometheusRule() {
		t.Errorf("alerts printed:\n%s", out)
	}
}
