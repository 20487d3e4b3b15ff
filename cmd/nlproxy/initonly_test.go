package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOOMScoreIsWrittenOnlyIfItDiffers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "oom_score_adj")
	write(t, path, "100\n")
	if err := adjustOOMScore(path, -999); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "-999" {
		t.Fatalf("%q, %v: want -999", text, err)
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := adjustOOMScore(path, -999); err != nil {
		t.Fatalf("the same score was written: %v", err)
	}
	if after, err := os.Stat(path); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Fatalf("the same score was written: %v", err)
	}
}
