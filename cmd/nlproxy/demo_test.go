package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"golang.org/x/sys/unix"
)

const (
	rightLine = " steps went as they should, in "
	wrongLine = " steps did not go as they should, in "
)

// TestDemoProgram runs the program as its users do.
func TestDemoProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "nlproxy")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Run("root", func(t *testing.T) { demoSucceeds(t, demoProgram(t, program), start) })
	t.Run("user", func(t *testing.T) { demoSucceeds(t, demoProgram(t, program), withoutRights) })
	for how, interrupt := range interruptions {
		t.Run(how, func(t *testing.T) { demoInterrupted(t, demoProgram(t, program), interrupt) })
	}
	t.Run("stay", func(t *testing.T) { demoStays(t, demoProgram(t, program, "--stay")) })
	t.Run("forbidden", func(t *testing.T) { demoForbidden(t, program) })
}

// demoProgram is a command that runs the demonstration. At the end of the test
// nothing may be left of it where temporary files go.
func demoProgram(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	temp := t.TempDir()
	cmd := exec.Command(program, append([]string{"demo"}, args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	t.Cleanup(func() {
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	return cmd
}

// start starts cmd with all the rights that root of this test's user namespace
// has, as if it were the host's.
func start(_ *testing.T, cmd *exec.Cmd) error { return cmd.Start() }

// withoutRights starts cmd without the right to make namespaces other than a
// user namespace.
func withoutRights(t *testing.T, cmd *exec.Cmd) error {
	t.Helper()
	return labtest.Current(t).Do(func() error {
		// A program has no rights that are not in the set of its thread
		// (capabilities(7)); this thread ends with the function.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_ADMIN, 0, 0, 0); err != nil {
			return err
		}
		return cmd.Start()
	})
}

func demoSucceeds(t *testing.T, cmd *exec.Cmd, start func(*testing.T, *exec.Cmd) error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	begin := time.Now()
	if err := start(t, cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &errs)
	}
	t.Logf("took %v", time.Since(begin))
	if !strings.Contains(out.String(), rightLine) || strings.Contains(out.String(), "WRONG") {
		t.Errorf("verdict is not that all is right:\n%s", &out)
	}
	for line := range strings.Lines(out.String()) {
		long := strings.Contains(line, "--manifests=") // where temporary files are is not ours to say
		if n := utf8.RuneCountInString(line); n > pageWidth+1 && !long {
			t.Errorf("%d columns: %s", n-1, line)
		}
	}
}

// interruptions are the ways to end the program early, by its process and the
// pipe that it prints to.
var interruptions = map[string]func(*os.Process, io.Closer) error{
	"interrupted":     func(p *os.Process, _ io.Closer) error { return p.Signal(unix.SIGINT) },
	"terminated":      func(p *os.Process, _ io.Closer) error { return p.Signal(unix.SIGTERM) },
	"hung up on":      func(p *os.Process, _ io.Closer) error { return p.Signal(unix.SIGHUP) },
	"not read to end": func(_ *os.Process, out io.Closer) error { return out.Close() },
}

// demoInterrupted interrupts the program as soon as traffic runs.
func demoInterrupted(t *testing.T, cmd *exec.Cmd, interrupt func(*os.Process, io.Closer) error) {
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == steps[0].title {
			if err := interrupt(cmd.Process, out); err != nil {
				t.Error(err)
			}
		}
		if strings.Contains(lines.Text(), rightLine) {
			t.Error("went on to the verdict")
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != int(codeInterrupted) {
		t.Errorf("ended with %v, want code %d", err, codeInterrupted)
	}
	if got, want := errs.String(), "nlproxy: demo: interrupted\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

// demoStays uses the shell that the program starts in the end.
func demoStays(t *testing.T, cmd *exec.Cmd) {
	cmd.Env = append(cmd.Env, "SHELL=/bin/sh")
	cmd.Stdin = strings.NewReader("echo \"manifests: $MANIFESTS\"\nnlproxy rules\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, shell, stayed := strings.Cut(string(out), invitation)
	if !stayed || !strings.Contains(shell, "manifests: /") || !strings.Contains(shell, "-A KUBE-SERVICES ") {
		t.Errorf("in the shell: %s", shell)
	}
}

// demoForbidden runs the program where no user namespaces may be made, by
// somebody who may make no others.
func demoForbidden(t *testing.T, program string) {
	if !labtest.Alone(t) {
		return
	}
	const knob = "/proc/sys/user/max_user_namespaces"
	if ids, err := os.ReadFile("/proc/self/uid_map"); err != nil || strings.Contains(string(ids), "4294967295") {
		labtest.Missing(t, "user namespace of this test's own (%v): %s is the host's", err, knob)
	}
	if err := os.WriteFile(knob, []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	cmd := demoProgram(t, program)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := withoutRights(t, cmd); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 || out.Len() > 0 {
		t.Errorf("ended with %v, want code 1, and printed %s", err, &out)
	}
	for _, want := range []string{"nlproxy: demo: " + lab.ErrForbidden.Error(), knob + " is 0. As root: sysctl -w user.max_user_namespaces=", "sudo ./nlproxy demo"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("error does not say %q: %s", want, &errs)
		}
	}
}

func TestDemoFindsWhatIsWrong(t *testing.T) {
	if !labtest.Alone(t) {
		return
	}
	var out, errs bytes.Buffer
	d := demo{manifests: changed(t, "web.yaml", "10.244.2.2", "10.244.1.3"), out: &out, errs: &errs}
	if code := d.carryOut(t.Context()); code != codeWrong {
		t.Errorf("code %d, want %d", code, codeWrong)
	}
	_, verdict, _ := strings.Cut(out.String(), wrongLine)
	for _, want := range []string{
		"Cluster IP, pod-3 tcp 10.96.0.10:80: pod-1 answered ",
		"remote-1 answered 0 of 1000, should be 333 ± ",
	} {
		if !strings.Contains(verdict, want) {
			t.Errorf("verdict does not say %q:\n%s%s", want, &out, &errs)
		}
	}
}

func TestDemoNamesTheStageThatFails(t *testing.T) {
	if !labtest.Alone(t) {
		return
	}
	ctx, interrupt := context.WithCancel(t.Context())
	for _, c := range []struct {
		name, want string
		manifests  fs.FS
		before     func()
	}{
		{"no service", "list the rules: service default/web has no rules", fstest.MapFS{}, func() {}},
		{"interrupted", "interrupted", fstest.MapFS{}, interrupt},
	} {
		c.before()
		var out, errs bytes.Buffer
		code := demo{manifests: c.manifests, out: &out, errs: &errs}.carryOut(ctx)
		if got, want := errs.String(), "nlproxy: demo: "+c.want+"\n"; code == 0 || got != want {
			t.Errorf("%s: code %d, printed %q, want %q", c.name, code, got, want)
		}
	}
}

// changed is the manifests of the demonstration, with a text of a file replaced.
func changed(t *testing.T, file, old, new string) fs.FS {
	t.Helper()
	all := fstest.MapFS{}
	err := fs.WalkDir(demoManifests, "demo", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := demoManifests.ReadFile(name)
		all[strings.TrimPrefix(name, "demo/")] = &fstest.MapFile{Data: content}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	before := all[file].Data
	if all[file].Data = bytes.ReplaceAll(before, []byte(old), []byte(new)); bytes.Equal(before, all[file].Data) {
		t.Fatalf("%s: no %q to replace", file, old)
	}
	return all
}

func TestJudge(t *testing.T) {
	answers := func(by map[string]int, source string, others ...lab.Outcome) result {
		sources := map[netip.Addr]int{netip.MustParseAddr(source): 1}
		return result{tally: lab.Tally{By: by, Sources: sources, Others: others}}
	}
	ended := func(kind lab.Kind, took time.Duration) result {
		return result{tally: lab.Tally{Others: []lab.Outcome{{Kind: kind}}}, took: took}
	}
	two := by("a", "b").seenAs("10.0.0.1")
	for _, c := range []struct {
		name string
		want want
		got  result
		says []string
	}{
		{"as wanted", two, answers(map[string]int{"a": 520, "b": 480}, "10.0.0.1"), nil},
		{"not tried", two, result{skipped: "no reason"}, nil},
		{"unequal shares", two, answers(map[string]int{"a": 600, "b": 400}, "10.0.0.1"),
			[]string{"a answered 600 of 1000, should be 500 ± 79", "b answered 400 of 1000, should be 500 ± 79"}},
		{"another source", two, answers(map[string]int{"a": 500, "b": 500}, "10.0.0.2"),
			[]string{"servers saw 10.0.0.2, should be 10.0.0.1"}},
		{"a stranger", by("a"), answers(map[string]int{"a": 20, "c": 1}, "10.0.0.1"),
			[]string{"c answered, which should not", "a answered 20 of 21, should be 21 ± 0"}},
		{"lost", by("a"), answers(map[string]int{"a": 20}, "10.0.0.1", lab.Outcome{Kind: lab.TimedOut}),
			[]string{"1 of 21 connections were not answered, the first: timed out"}},
		{"together", by("a", "b").asOne(), answers(map[string]int{"b": 100}, "10.0.0.1"), nil},
		{"not together", by("a", "b").asOne(), answers(map[string]int{"a": 1, "b": 99}, "10.0.0.1"),
			[]string{"several answered (a 1, b 99), should be one"}},
		{"refused", refused, ended(lab.Refused, time.Millisecond), nil},
		{"refused late", refused, ended(lab.Refused, time.Second), []string{"was refused only after 1.00 s"}},
		{"refused but should be dropped", dropped, ended(lab.Refused, time.Millisecond), []string{"was refused, should be timed out"}},
		{"answered but should be refused", refused, answers(map[string]int{"a": 1}, "10.0.0.1"), []string{"was answered (a 1), should be refused"}},
	} {
		if says := c.want.judge(c.got); !slices.Equal(says, c.says) {
			t.Errorf("%s: %q, want %q", c.name, says, c.says)
		}
	}
}

func TestKnobsThatForbidNamespaces(t *testing.T) {
	system := map[string]string{
		"/proc/sys/user/max_user_namespaces":                     "96365\n",
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n",
	}
	got := forbidding(func(path string) ([]byte, error) {
		if value, ok := system[path]; ok {
			return []byte(value), nil
		}
		return nil, fs.ErrNotExist
	})
	want := []string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns is 1. As root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestDurationsHaveThreeDigits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                        "0 µs",
		999 * time.Microsecond:   "999 µs",
		1500 * time.Microsecond:  "1.50 ms",
		10 * time.Millisecond:    "10.0 ms",
		250 * time.Millisecond:   "250 ms",
		12340 * time.Millisecond: "12.3 s",
		75 * time.Minute:         "4500 s",
	} {
		if got := short(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestRulesAreFoldedBeforeOptions(t *testing.T) {
	got := fmt.Sprintf("%q", folded("-A X -s 10.0.0.1/32 -j DNAT --to 1", 22))
	if want := `["-A X -s 10.0.0.1/32" "    -j DNAT --to 1"]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestOnlyAFirstEndpointLetsAConnectionSlip(t *testing.T) {
	for _, c := range changes {
		want := 0
		if c.title == "another endpoint comes" {
			want = 1
		}
		if got := c.underWay(); got != want {
			t.Errorf("%s: %d connections may slip, want %d", c.title, got, want)
		}
	}
}
