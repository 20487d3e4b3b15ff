package main

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"go.uber.org/zap/zaptest"
)

// followed follows a file for the length of a test, and returns what waits for
// the next look.
func followed(t *testing.T, path string) (look func()) {
	t.Helper()
	looks := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		followFile(ctx, path, func() {
			select {
			case looks <- struct{}{}:
			case <-ctx.Done():
			}
		}, zaptest.NewLogger(t))
	}()
	t.Cleanup(func() { stop(); <-ended })
	return func() { t.Helper(); <-looks }
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// hangUp makes followFile look, which it does only once it follows.
func hangUp(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

func TestFollowFileLooksWhenTheFileChanges(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.conf")
	write(t, filepath.Join(dir, "first"), "1")
	if err := os.Symlink("first", path); err != nil {
		t.Fatal(err)
	}
	look := followed(t, path)
	look() // at once
	for name, change := range map[string]func(){
		"written": func() { write(t, path, "2") },
		"replaced": func() {
			write(t, path+".new", "3")
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		},
		"linked to another": func() {
			write(t, filepath.Join(dir, "second"), "4")
			if err := os.Symlink("second", filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(dir, "link"), path); err != nil {
				t.Fatal(err)
			}
		},
		"removed": func() {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Log(name)
		change()
		look()
		if name == "removed" {
			write(t, path, "5")
			look()
		}
	}
}
