package memory

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

func TestConstantPagesAreThoseOfTheProgramAlone(t *testing.T) {
	smaps := strings.TrimSpace(`
00400000-00e87000 r-xp 00000000 fe:00 10011393                           /opt/a b/nlproxy
Rss:               10780 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd mr mw me sd
00e87000-0194e000 r--p 00a87000 fe:00 10011393                           /opt/a b/nlproxy
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd mr mw me sd
0194e000-01958000 r--p 0154e000 fe:00 10011393                           /opt/a b/nlproxy
Anonymous:             4 kB
Swap:                  0 kB
VmFlags: rd mr mw me sd
01958000-01960000 r--p 01558000 fe:00 10011393                           /opt/a b/nlproxy
Anonymous:             0 kB
Swap:                  4 kB
VmFlags: rd mr mw me sd
01960000-019da000 rw-p 01560000 fe:00 10011393                           /opt/a b/nlproxy
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd mr mw me sd
019da000-01a0b000 rw-p 00000000 00:00 0
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd mr mw me sd
c000000000-c000400000 rw-p 00000000 00:00 0                              [anon: Go: heap]
Anonymous:          4096 kB
Swap:                  0 kB
VmFlags: rd mr mw me sd
7f0000000000-7f0000001000 r--p 00000000 fe:00 77                         /opt/other/nlproxy
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd mr mw me sd
7ffc00000000-7ffc00001000 r-xp 00000000 00:00 0                          [vdso]
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd mr mw me sd`)
	got, err := constant(strings.NewReader(smaps), "/opt/a b/nlproxy")
	want := []span{{0x400000, 0xe87000}, {0xe87000, 0x194e000}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%x, %v: want %x", got, err, want)
	}
	if got, err := constant(strings.NewReader("40-zz r-xp 0 fe:00 1 /nlproxy"), "/nlproxy"); err == nil {
		t.Errorf("%x for an address that is none", got)
	}
}

// resident is how many kB of files this process has in memory.
func resident(t *testing.T) (kB int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "RssFile:")
	if _, err := fmt.Sscanf(after, "%d kB", &kB); err != nil {
		t.Fatal(err)
	}
	return kB
}

func TestReleaseStartGivesPagesBackAndLosesNothing(t *testing.T) {
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	before := resident(t)
	if err := ReleaseStart(); err != nil {
		t.Fatal(err)
	}
	if after := resident(t); after >= before {
		t.Errorf("%d kB of files before, %d after", before, after)
	}
	if again, err := os.ReadFile("/proc/self/exe"); err != nil || !slices.Equal(again, program) {
		t.Errorf("the program has changed: %v", err)
	}
}

func TestOnlyASmallHeapIsKeptSmall(t *testing.T) {
	for name, test := range map[string]struct {
		bytes int
		gogc  string
		want  int
	}{
		"small":              {0, "", smallPercent},
		"large":              {2 * smallHeap, "", 100},
		"as the user has it": {0, "200", 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", test.gogc)
			defer debug.SetGCPercent(debug.SetGCPercent(100))
			lives := make([]byte, test.bytes)
			runtime.GC()
			KeepSmall()
			if got := debug.SetGCPercent(100); got != test.want {
				t.Errorf("GOGC is %d, want %d", got, test.want)
			}
			runtime.KeepAlive(lives)
		})
	}
}
