package kernels

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long a kernel may take for everything: minutes, on a machine
// that does much else first.
const patience = 30 * time.Minute

// leastPriority is that of setpriority(2) by which all others come first.
const leastPriority = 19

// step is a program that runs on the kernel.
type step struct {
	name, dir string
	command   string
	// must are tests that have to pass there: not fail, and not be skipped.
	must []string
}

// prologue makes the machine's root directory a usual one. The kernel's own
// messages would come in between.
const prologue = `#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
echo 1 > /proc/sys/kernel/printk
`

// script runs the steps one after the other, says how each ended, and switches
// the machine off.
func script(steps []step) string {
	var b strings.Builder
	b.WriteString(prologue)
	for _, s := range steps {
		fmt.Fprintf(&b, "cd %s; echo; echo '=== begin %s'; %s; echo; echo \"=== end $?\"\n", s.dir, s.name, s.command)
	}
	b.WriteString("poweroff -f\n")
	return b.String()
}

// boot starts a kernel with an initial file system, and returns what it wrote to
// its console until it switched itself off. A kernel that panics ends at once.
func boot(t *testing.T, kernel, initrd string) string {
	t.Helper()
	images, err := filepath.Glob(filepath.Join(kernel, "boot/vmlinuz-*"))
	if err != nil || len(images) != 1 {
		t.Fatalf("kernels %q in %s: %v", images, kernel, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "2048",
		"-nographic", "-nic", "none", "-no-reboot", "-kernel", images[0], "-initrd", initrd, "-append", "console=ttyS0 panic=1 quiet")
	// It dies with this process, whose thread has to live as long, and gives way to
	// other tests, which count what is lost while they wait: a child begins with the
	// priority of the thread that starts it, which is of no other use after that.
	runtime.LockOSThread()
	if err := unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), leastPriority); err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	console := strings.ReplaceAll(string(out), "\r", "")
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, tail(console))
	}
	return console
}

// ended is how a step ended.
type ended struct {
	code   int
	output string
}

// parts are the console's text of each step.
var parts = regexp.MustCompile(`(?s)\n=== begin (\S+)\n(.*?)\n=== end (\d+)\n`)

// outcomes are the steps that came to an end, by name.
func outcomes(console string) map[string]ended {
	all := map[string]ended{}
	for _, part := range parts.FindAllStringSubmatch(console, -1) {
		code, err := strconv.Atoi(part[3])
		if err != nil {
			code = -1
		}
		all[part[1]] = ended{code, part[2]}
	}
	return all
}

// wrong says what is wrong with how the step ended: it did not, or not well, or
// tests have not passed that must.
func (s step) wrong(console string) (all []string) {
	e, ok := outcomes(console)[s.name]
	switch {
	case !ok:
		return []string{"did not end:\n" + tail(console)}
	case e.code != 0:
		return []string{fmt.Sprintf("ended with code %d:\n%s", e.code, tail(e.output))}
	}
	for _, name := range s.must {
		if !strings.Contains("\n"+e.output, "\n--- PASS: "+name+" ") {
			all = append(all, name+" has not passed")
		}
	}
	return all
}

// tail is the end of a text, where it is told what is wrong.
func tail(text string) string {
	const enough = 16 << 10
	return text[max(0, len(text)-enough):]
}
