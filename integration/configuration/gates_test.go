package configuration

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

var update = flag.Bool("update", false, "rewrite the table of feature gates")

// The table in package config is what kube-proxy registers.
func TestFeatureGatesAreKubeProxys(t *testing.T) {
	kubeProxy(t) // that it is built says that its modules are there
	const table = "../../cmd/internal/config/gates.txt"
	cmd := exec.Command("go", "run", "./cmd/gates")
	cmd.Dir = filepath.Join("..", "peers")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOPROXY=off")
	printed, err := cmd.Output()
	if err != nil {
		labtest.Missing(t, "feature gates of kube-proxy: %s: %v", cmd, err)
	}
	if *update {
		if err := os.WriteFile(table, printed, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(have), string(printed)); d != "" {
		t.Errorf("gates.txt, -update rewrites it (-have +kube-proxy):\n%s", d)
	}
}

// The peer that is built is the one that the table is of.
func TestHelpOfKubeProxyHasTheGatesOfTheTable(t *testing.T) {
	text := run(t, kubeProxy(t), "--help").out
	table, err := os.ReadFile("../../cmd/internal/config/gates.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		words := strings.Fields(line)
		want := fmt.Sprintf("%s=true|false (%s - default=%s)", words[0], words[1], words[2])
		// Only what is alpha or beta is in the help.
		if shown := words[1] == "ALPHA" || words[1] == "BETA"; shown != strings.Contains(text, " "+want) {
			t.Errorf("%s: in the help of kube-proxy: %t", want, !shown)
		}
	}
}
