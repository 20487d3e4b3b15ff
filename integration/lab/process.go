package lab

import (
	"fmt"
	"os/exec"
	"syscall"
)

// A Process is a program that runs in a namespace. It dies with this process.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // valid once done is closed
}

// Start starts cmd in n. Of its SysProcAttr, Pdeathsig is Start's to set.
//
// A child's death signal is sent when the thread that started it ends, so one
// thread is kept for each process until that ends.
func (n *Namespace) Start(cmd *exec.Cmd) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 2)
	go func() {
		started <- n.Do(func() error {
			if err := cmd.Start(); err != nil {
				return err
			}
			started <- nil
			p.err = cmd.Wait()
			close(p.done)
			return nil
		})
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s in %s: %w", cmd.Path, n, err)
	}
	return p, nil
}

// PID is the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when p has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err waits until p has ended and returns how, as exec.Cmd's Wait does.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Signal sends s to p, which may have ended.
func (p *Process) Signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// Kill ends p at once, gives it no chance to tidy up, and waits until it has
// ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it fails only once p has ended
	<-p.done
}

// ExitCode waits until p has ended and returns its code, or -1 if a signal
// ended it.
func (p *Process) ExitCode() int {
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}
