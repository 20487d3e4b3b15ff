package golden

import (
	"os"
	"path/filepath"
	"testing"
)

// A Case is one folder of integration/testdata/golden.
type Case struct {
	// Name is the folder's.
	Name string
	// Objects is a Node, Services with their status and EndpointSlices, as
	// YAML documents. They have not passed an API server's defaulting.
	Objects []byte
	// Config is a KubeProxyConfiguration in which {kubeconfig} stands for the
	// path of a kubeconfig.
	Config []byte
	// Want is kube-proxy's ruleset, normalised.
	Want string
}

// files are those of a case.
const (
	objectsFile = "objects.yaml"
	configFile  = "config.yaml"
	wantFile    = "kube-proxy-1.37.2.txt"
)

// Cases are all cases, by name.
func Cases(t testing.TB) []Case {
	t.Helper()
	dir := folder(t)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var cases []Case
	for _, e := range entries {
		cases = append(cases, read(t, filepath.Join(dir, e.Name())))
	}
	if len(cases) == 0 {
		t.Fatalf("no cases in %s", dir)
	}
	return cases
}

// Named is the case of that name.
func Named(t testing.TB, name string) Case {
	t.Helper()
	return read(t, filepath.Join(folder(t), name))
}

func read(t testing.TB, dir string) Case {
	t.Helper()
	return Case{
		Name:    filepath.Base(dir),
		Objects: file(t, dir, objectsFile),
		Config:  file(t, dir, configFile),
		Want:    string(file(t, dir, wantFile)),
	}
}

func file(t testing.TB, dir, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// folder finds the cases from the working directory, which for a test is its
// package's, upwards.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		found := filepath.Join(dir, "integration", "testdata", "golden")
		if _, err := os.Stat(found); err == nil {
			return found
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("integration/testdata/golden is not in any folder above the working directory")
		}
		dir = up
	}
}
