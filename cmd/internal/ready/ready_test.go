package ready

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// listen is a service manager's end at a path or abstract name, which the
// environment names.
func listen(t *testing.T, name string) *net.UnixConn {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTIFY_SOCKET", name)
	return conn
}

func received(t *testing.T, conn *net.UnixConn) string {
	t.Helper()
	buffer := make([]byte, 4096)
	n, err := conn.Read(buffer)
	if err != nil {
		t.Fatal(err)
	}
	return string(buffer[:n])
}

func TestMessagesArriveAtThePathOrAbstractName(t *testing.T) {
	for kind, name := range map[string]string{
		"path":     filepath.Join(t.TempDir(), "notify"),
		"abstract": fmt.Sprintf("@nlproxy-test-%d", os.Getpid()),
	} {
		t.Run(kind, func(t *testing.T) {
			conn := listen(t, name)
			n, err := New()
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				say  func() error
				want string
			}{
				{func() error { return n.Ready("3 services\nREADY=0") }, "^READY=1\nSTATUS=3 services READY=0$"},
				{n.Reloading, "^RELOADING=1\nMONOTONIC_USEC=[0-9]+$"},
				{func() error { return n.Ready("") }, "^READY=1$"},
				{n.Stopping, "^STOPPING=1$"},
			} {
				if err := c.say(); err != nil {
					t.Fatal(err)
				}
				if got := received(t, conn); !regexp.MustCompile(c.want).MatchString(got) {
					t.Errorf("got %q, want %s", got, c.want)
				}
			}
		})
	}
}

func TestWithoutAServiceManagerNothingIsSaid(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	n, err := New()
	if n != nil || err != nil {
		t.Fatalf("got %v, %v", n, err)
	}
	healthy := func() bool { t.Error("is asked for its health"); return true }
	if err := errors.Join(n.Ready("well"), n.Reloading(), n.Stopping(), n.Watchdog(t.Context(), healthy)); err != nil {
		t.Error(err)
	}
}

func TestAServiceManagerThatIsAwayIsAnErrorThatNamesTheMessage(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nobody"))
	n, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Ready("well"); err == nil || !strings.HasPrefix(err.Error(), "tell the service manager READY=1: dial unixgram ") {
		t.Errorf("got %v", err)
	}
}

func TestWatchdogTimeIsThatOfThisProcess(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "@nobody")
	own := strconv.Itoa(os.Getpid())
	for _, c := range []struct {
		microseconds, pid string
		want              time.Duration
		ok                bool
	}{
		{"", "", 0, true},
		{"30000000", "", 30 * time.Second, true},
		{"30000000", own, 30 * time.Second, true},
		{"30000000", "1" + own, 0, true}, // meant for another process
		{"soon", "", 0, false},
		{"0", "", 0, false},
	} {
		t.Setenv("WATCHDOG_USEC", c.microseconds)
		t.Setenv("WATCHDOG_PID", c.pid)
		n, err := New()
		if (err == nil) != c.ok {
			t.Errorf("%q, %q: %v", c.microseconds, c.pid, err)
		}
		if n.deadline != c.want {
			t.Errorf("%q, %q: %s, want %s", c.microseconds, c.pid, n.deadline, c.want)
		}
	}
}

func TestWatchdogIsFedTwiceInItsTimeWhileHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fed []time.Duration
		begin := time.Now()
		n := &Notifier{deadline: 30 * time.Second, send: func(state string) error {
			if state != "WATCHDOG=1" {
				t.Errorf("said %q", state)
			}
			fed = append(fed, time.Since(begin))
			return nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
		defer cancel()
		ill := func() bool { return time.Since(begin) == 30*time.Second }
		if err := n.Watchdog(ctx, func() bool { return !ill() }); err != nil {
			t.Error(err)
		}
		want := "[0s 15s 45s 1m0s 1m15s 1m30s]"
		if got := fmt.Sprint(fed); got != want {
			t.Errorf("fed at %s, want %s", got, want)
		}
	})
}

func TestWatchdogOutlivesASignThatCouldNotBeGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing, signs := errors.New("no buffer space available"), 0
		n := &Notifier{deadline: 2 * time.Second, send: func(string) error {
			if signs++; signs == 2 {
				return failing
			}
			return nil
		}}
		for _, c := range []struct {
			lasts time.Duration
			want  error
		}{{1500 * time.Millisecond, failing}, {2500 * time.Millisecond, nil}} {
			signs = 0
			ctx, cancel := context.WithTimeout(t.Context(), c.lasts)
			if err := n.Watchdog(ctx, func() bool { return true }); err != c.want {
				t.Errorf("after %d signs: %v, want %v", signs, err, c.want)
			}
			cancel()
		}
	})
}
