package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReadFileWaitsForNoWriterOfAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "config.conf")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := readFile(pipe); len(got) != 0 || err != nil {
		t.Errorf("nobody writes: %q, %v", got, err)
	}
	written, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer written.Close()
	if _, err := written.WriteString("kind: x\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := readFile(pipe); err == nil || !strings.Contains(err.Error(), pipe) {
		t.Errorf("the end is never written: %v", err)
	}
}

func TestReadFileReadsWhatAPipeHolds(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("kind: x\n"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := readFile(fmt.Sprintf("/proc/self/fd/%d", r.Fd())); string(got) != "kind: x\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestReadFileRefusesWhatIsTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.conf")
	for size, ok := range map[int]bool{largest: true, largest + 1: false} {
		if err := os.WriteFile(path, bytes.Repeat([]byte("#"), size), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readFile(path)
		if (err == nil) != ok || ok && len(got) != size {
			t.Errorf("%d bytes: %d, %v", size, len(got), err)
		}
	}
	if _, err := readFile("/dev/zero"); err == nil {
		t.Error("what has no end is read")
	}
}
