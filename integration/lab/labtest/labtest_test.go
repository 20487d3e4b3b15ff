package labtest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

func TestMainGivesRootInAnEmptyNetwork(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Errorf("user id %d, want 0", os.Geteuid())
	}
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	if len(links) != 1 || links[0].Attrs().Name != "lo" || links[0].Attrs().Flags&net.FlagUp == 0 {
		t.Errorf("links %v, want lo alone, up", links)
	}
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "made0"}, PeerName: "made1"}); err != nil {
		t.Errorf("no right to make a link: %v", err)
	}
}

func TestMainKeepsItsMarkFromChildren(t *testing.T) {
	if v, set := os.LookupEnv("NLPROXY_LAB"); set {
		t.Errorf("NLPROXY_LAB=%q would make a child believe that it is inside", v)
	}
}

func TestNamespaceIsApart(t *testing.T) {
	a, b := labtest.Namespace(t), labtest.Namespace(t)
	l, err := a.Listen("tcp", "127.0.0.1:8080")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()

	conn, err := a.Dial(ctx, net.Dialer{}, "tcp", "127.0.0.1:8080")
	if err != nil {
		t.Fatalf("from the same namespace: %v", err)
	}
	conn.Close()
	if conn, err := b.Dial(ctx, net.Dialer{}, "tcp", "127.0.0.1:8080"); err == nil {
		conn.Close()
		t.Error("answered from another namespace")
	}
	if conn, err := net.Dial("tcp", "127.0.0.1:8080"); err == nil {
		conn.Close()
		t.Error("answered from outside of any")
	}
}

func TestDoReachesProgramsAndSysctls(t *testing.T) {
	labtest.Tools(t, "cat")
	const forward = "/proc/sys/net/ipv4/ip_forward"
	ns := labtest.Namespace(t)
	var read, printed []byte
	err := ns.Do(func() (err error) {
		if err := os.WriteFile(forward, []byte("1"), 0); err != nil {
			return err
		}
		if read, err = os.ReadFile(forward); err != nil {
			return err
		}
		printed, err = exec.Command("cat", forward).Output()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if string(read) != "1\n" || string(printed) != "1\n" {
		t.Errorf("inside: read %q, a program printed %q; want 1", read, printed)
	}
	if outside, _ := os.ReadFile(forward); string(outside) != "0\n" {
		t.Errorf("outside: %q, want 0", outside)
	}
}

func TestDoLeavesNoThreadBehindInTheNamespace(t *testing.T) {
	before, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	ns := labtest.Namespace(t)
	for range 100 {
		if err := ns.Do(func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		if now, _ := os.Readlink("/proc/thread-self/ns/net"); now != before {
			t.Fatalf("in %s after Do, want %s", now, before)
		}
	}
}

func TestDoReturnsErrors(t *testing.T) {
	want := errors.New("refused")
	if err := labtest.Namespace(t).Do(func() error { return want }); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func TestDoEndsTheCallerWhenItsFunctionEndsTheTest(t *testing.T) {
	ns := labtest.Namespace(t)
	ended := make(chan bool)
	var after bool
	go func() {
		defer func() { ended <- !after }()
		_ = ns.Do(func() error { runtime.Goexit(); return nil })
		after = true
	}()
	if !<-ended {
		t.Error("the caller went on")
	}
}

func TestAloneIsInFreshNamespaces(t *testing.T) {
	if !labtest.Alone(t) {
		return
	}
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	if len(links) != 1 {
		t.Errorf("links %v, want lo alone", links)
	}
}

// TestPrisoner does what the tests below ask of the process that they start.
func TestPrisoner(t *testing.T) {
	switch os.Getenv("NLPROXY_TEST_PRISONER") {
	case "fails":
		t.Fatal("failed as asked")
	case "waits":
		// It has this process's output, and outlives it unless it is killed.
		sleep := exec.Command("sleep", "600")
		sleep.Stdout = os.Stdout
		if _, err := labtest.Namespace(t).Start(sleep); err != nil {
			t.Fatal(err)
		}
		fmt.Println("waiting")
		if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEverythingDiesWithTheProcessThatStartedIt(t *testing.T) {
	labtest.Tools(t, "sleep")
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestPrisoner$")
	cmd.Env = append(os.Environ(), "NLPROXY_TEST_PRISONER=waits")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	// A pipe of our own: the end of it is that of all who hold it.
	out, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout = theirs
	if err := errors.Join(cmd.Start(), theirs.Close()); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "waiting\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := out.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(lines); err != nil {
		t.Errorf("still there: %q, %v", rest, err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		t.Error(err)
	}
}

func TestMainPassesFlagsOutputAndExitCode(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestPrisoner$", "-test.v")
	cmd.Env = append(os.Environ(), "NLPROXY_TEST_PRISONER=passes")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestPrisoner") {
		t.Errorf("%v\n%s", err, out)
	}
	cmd = exec.Command("/proc/self/exe", "-test.run=^TestPrisoner$")
	cmd.Env = append(os.Environ(), "NLPROXY_TEST_PRISONER=fails")
	out, err = cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), "failed as asked") {
		t.Errorf("%v\n%s", err, out)
	}
}
