package conntrack

import (
	"io/fs"
	"os"
	"runtime"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"
)

func online(list string) fs.FS {
	return fstest.MapFS{"devices/system/cpu/online": {Data: []byte(list)}}
}

func TestCoresAreThoseOfTheNode(t *testing.T) {
	for list, want := range map[string]int{
		"0\n":           1,
		"0-3\n":         4,
		"0-3,8\n":       5,
		"1,3,5-6\n":     4,
		"0-511,600\n":   513,
		"0-127,256-383": 256,
	} {
		if got := Cores(online(list)); got != want {
			t.Errorf("%q: %d, want %d", list, got, want)
		}
	}
}

func TestCoresWithoutAListAreThoseOfTheProcess(t *testing.T) {
	lists := map[string]fs.FS{"no file": fstest.MapFS{}}
	for _, list := range []string{"", "\n", "x", "3-0", "0-", "-3", "0,,2", "0-3:1/2", "0-4294967295"} {
		lists[list] = online(list)
	}
	for name, sys := range lists {
		if got := Cores(sys); got != runtime.NumCPU() {
			t.Errorf("%q: %d, want %d", name, got, runtime.NumCPU())
		}
	}
}

// A process that is bound to one CPU still sees all that are online.
func TestCoresOfThisNode(t *testing.T) {
	sys := os.DirFS("/sys")
	if _, err := fs.Stat(sys, "devices/system/cpu/online"); err != nil {
		t.Fatal(err)
	}
	before := Cores(sys)
	if before < runtime.NumCPU() {
		t.Errorf("%d, fewer than the %d that this process has", before, runtime.NumCPU())
	}
	done := make(chan int)
	go func() {
		runtime.LockOSThread() // and end with the thread, whose mask is changed
		var one, all unix.CPUSet
		if err := unix.SchedGetaffinity(0, &all); err != nil {
			t.Error(err)
		}
		for cpu := range 1024 {
			if all.IsSet(cpu) {
				one.Set(cpu)
				break
			}
		}
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			t.Error(err)
		}
		done <- Cores(sys)
	}()
	if got := <-done; got != before {
		t.Errorf("%d when bound to one CPU, want %d", got, before)
	}
}
