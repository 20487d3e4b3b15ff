package deployment

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

// TestSystemdKnowsAllThatTheUnitSays has systemd look for the binary where it is
// here.
func TestSystemdKnowsAllThatTheUnitSays(t *testing.T) {
	text := manifest(t, "systemd")
	const installed = "ExecStart=/usr/local/bin/nlproxy "
	if strings.Count(text, installed) != 1 {
		t.Fatalf("not one %q:\n%s", installed, text)
	}
	unit := filepath.Join(t.TempDir(), "nlproxy.service")
	text = strings.Replace(text, installed, "ExecStart="+daemon.Binary(t)+" ", 1)
	if err := os.WriteFile(unit, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	// It warns of what it does not know and yet succeeds, so nothing may be said.
	if out := labtest.Run(t, labtest.Current(t), "", "sh", "-c", "systemd-analyze verify --man=no "+unit+" 2>&1"); out != "" {
		t.Errorf("systemd-analyze verify says:\n%s", out)
	}
}
