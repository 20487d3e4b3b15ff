package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// hangUpWait is how long a shell may take to end when it is hung up on.
const hangUpWait = 2 * time.Second

// invitation is what to try in the shell.
const invitation = `
This shell is on the node, as root of its namespaces; the services are there until it ends.

  nlproxy rules                         the kernel's rules, with counters
  bash -c 'exec 3<>/dev/tcp/10.96.0.10/80; echo >&3; read -r line <&3; echo "$line"'
                                        asks a service: who answered, where, and from where
  vi $MANIFESTS/web.yaml                a change is in effect as soon as it is saved
  exit                                  and all of it is gone

`

// stay runs the user's shell on the node until it ends, or hangs up on it when
// ctx is done.
//
// This is the only place where nlproxy starts a program, which is the user's
// and asked for by --stay.
func (d demo) stay(ctx context.Context, dir string) error {
	if err := d.offerSelf(dir); err != nil {
		return err
	}
	io.WriteString(d.out, invitation)
	// The shell is hung up on when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	shell := shellPath()
	p, err := os.StartProcess(shell, []string{shell}, &os.ProcAttr{
		Env: append(os.Environ(),
			"MANIFESTS="+manifestsIn(dir),
			"PATH="+programsIn(dir)+string(filepath.ListSeparator)+os.Getenv("PATH")),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGHUP},
	})
	if err != nil {
		return fmt.Errorf("start shell: %w", err)
	}
	return attend(ctx, p)
}

// shellPath is the user's shell, or the one that there always is.
func shellPath() string {
	if shell := os.Getenv("SHELL"); filepath.IsAbs(shell) {
		return shell
	}
	return "/bin/sh"
}

// offerSelf puts this program where the shell looks for programs.
func (d demo) offerSelf(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Mkdir(programsIn(dir), 0o700); err != nil {
		return err
	}
	return os.Symlink(self, filepath.Join(programsIn(dir), "nlproxy"))
}

// attend waits for the end of a shell. How it ends is the user's business.
func attend(ctx context.Context, p *os.Process) error {
	ended := make(chan error, 1)
	go func() {
		_, err := p.Wait()
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	_ = p.Signal(syscall.SIGHUP) // it fails only once the shell has ended
	select {
	case <-ended:
	case <-time.After(hangUpWait):
		_ = p.Kill()
		<-ended
	}
	return ctx.Err()
}
