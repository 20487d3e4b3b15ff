package lean

import (
	"os"
	"strings"
	"testing"

	"github.com/prometheus/procfs"
)

// resident is how much of this process is in memory, in bytes.
func resident(t *testing.T) (file, anonymous uint64) {
	t.Helper()
	self, err := procfs.Self()
	if err != nil {
		t.Fatal(err)
	}
	status, err := self.NewStatus()
	if err != nil {
		t.Fatal(err)
	}
	return status.RssFile, status.RssAnon
}

func TestTrimGivesBackTheFileAndTheGarbage(t *testing.T) {
	const garbage = 64 << 20
	held := strings.Repeat("held ", 1000)
	block := make([]byte, garbage)
	for i := range block {
		block[i] = 1 // so that it is there
	}
	fileBefore, anonymousBefore := resident(t)
	if anonymousBefore < garbage {
		t.Fatalf("%d bytes are anonymous", anonymousBefore)
	}
	block = nil
	if err := Trim(); err != nil {
		t.Fatal(err)
	}
	file, anonymous := resident(t)
	t.Logf("of the file %d kB before, %d after; anonymous %d and %d", fileBefore/1024, file/1024, anonymousBefore/1024, anonymous/1024)
	if file >= fileBefore {
		t.Errorf("of the file %d bytes were there before, %d after", fileBefore, file)
	}
	if anonymous > anonymousBefore-garbage/2 {
		t.Errorf("anonymous were %d bytes before, %d after", anonymousBefore, anonymous)
	}
	if held != strings.Repeat("held ", 1000) {
		t.Error("something that is held has changed")
	}
}

func TestTrimTwiceIsNoError(t *testing.T) {
	for range 2 {
		if err := Trim(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.ReadFile("/proc/self/status"); err != nil {
		t.Error(err)
	}
}
