package metrics

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBuildTellsTheKubernetesRelease(t *testing.T) {
	var b Build
	b.setKubernetes([]*debug.Module{
		{Path: "k8s.io/klog/v2", Version: "v2.1.0"},
		{Path: "k8s.io/client-go", Version: "v0.37.2"},
	})
	if b.Major != "1" || b.Minor != "37" || b.kubernetes != "v1.37.2" {
		t.Errorf("got %+v", b)
	}
}

func TestVersionIsThatOfTheBuild(t *testing.T) {
	m := made(t, Options{Build: build})
	want := map[string]string{
		"major": "1", "minor": "37", "gitVersion": "v1.2.3", "gitCommit": "abc", "gitTreeState": "clean",
		"buildDate": "2026-01-02T03:04:05Z", "goVersion": runtime.Version(), "compiler": runtime.Compiler,
		"platform": runtime.GOOS + "/" + runtime.GOARCH,
	}
	var got map[string]string
	if err := json.Unmarshal([]byte(ask(m, "GET", "/version", "").body), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if text, _ := scraped(t, m, "kubernetes_build_info"); !strings.Contains(text, `minor="37"`) || !strings.Contains(text, `git_commit="abc"`) {
		t.Error(text)
	}
}
