package main

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zaptest"
)

// followed follows a file for the length of a test, and returns what waits for
// the next look.
func followed(t *testing.T, path string, hangup <-chan os.Signal) (look func()) {
	t.Helper()
	looks := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		followFile(ctx, path, hangup, func() {
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

func TestFollowFileLooksWhenTheFileChanges(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.conf")
	write(t, filepath.Join(dir, "first"), "1")
	if err := os.Symlink("first", path); err != nil {
		t.Fatal(err)
	}
	hangup := make(chan os.Signal, 1)
	look := followed(t, path, hangup)
	look() // at once
	hangup <- syscall.SIGHUP
	look()
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

func TestAFolderThatIsNeverLeftAloneDelaysAFileForABoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, start := newSettling(), time.Now()
		defer s.timer.Stop()
		<-s.timer.C
		s.after(anyway)
		changes := time.NewTicker(quiet / 2)
		defer changes.Stop()
		for {
			select {
			case <-changes.C:
				s.disturb()
				continue
			case <-s.timer.C:
			}
			break
		}
		if took := time.Since(start); took != quiet/2+patience {
			t.Errorf("it took %s from the first change after %s on, want %s", took, quiet/2, patience)
		}
		s.after(anyway)
		s.disturb()
		disturbed := time.Now()
		if <-s.timer.C; time.Since(disturbed) != quiet {
			t.Errorf("the next change took %s, want %s", time.Since(disturbed), quiet)
		}
	})
}
