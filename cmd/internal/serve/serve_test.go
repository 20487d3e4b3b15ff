package serve

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestMain(m *testing.M) { labtest.Main(m) }

var somewhere = netip.MustParseAddrPort("192.0.2.1:10249")

// answers tells what it was asked.
var answers = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) })

// listening replaces how s listens: each address is refused for so many times,
// and then there is a listener on this host, which comes over the channel.
func listening(s *Server, refusals int) <-chan net.Listener {
	made := make(chan net.Listener, 1)
	s.listen = func(ctx context.Context, _ netip.AddrPort) (net.Listener, error) {
		if refusals--; refusals >= 0 {
			return nil, errors.New("taken")
		}
		l, err := listen(ctx, netip.MustParseAddrPort("127.0.0.1:0"))
		made <- l
		return l, err
	}
	return made
}

// running is a server that runs until the function it returns is called, which
// returns what Run does.
func running(t *testing.T, s *Server) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return func() error { cancel(); return <-ended }
}

func newServer(t *testing.T, o Options) *Server {
	t.Helper()
	o.Name = "answers"
	if o.Handler == nil {
		o.Handler = answers
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(content)
}

func TestServerServesUntilStopped(t *testing.T) {
	s := newServer(t, Options{Address: somewhere})
	made := listening(s, 0)
	stop := running(t, s)
	base := "http://" + (<-made).Addr().String()
	if status, body := get(t, base+"/path"); status != 200 || body != "/path" {
		t.Errorf("status %d, %q", status, body)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(base + "/path"); err == nil {
		t.Error("it answers after it was stopped")
	}
}

func TestServerTriesAgainAndWarnsOnceInARow(t *testing.T) {
	core, logged := observer.New(zapcore.WarnLevel)
	s := newServer(t, Options{Address: somewhere, Retry: time.Millisecond, Logger: zap.New(core)})
	made := listening(s, 3)
	stop := running(t, s)
	listener := <-made
	if status, _ := get(t, "http://"+listener.Addr().String()); status != 200 {
		t.Errorf("status %d", status)
	}
	listener.Close() // as if the system had taken it away
	if status, _ := get(t, "http://"+(<-made).Addr().String()); status != 200 {
		t.Errorf("after the listener was lost: status %d", status)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	all := logged.All()
	if len(all) != 2 {
		t.Fatalf("logged %v, want the first refusal and the loss", all)
	}
	for i, want := range []string{"taken", "use of closed network connection"} {
		fields := all[i].ContextMap()
		if fields["what"] != "answers" || fields["address"] != somewhere.String() || !strings.Contains(fields["error"].(string), want) {
			t.Errorf("logged %v, want %s", fields, want)
		}
	}
}

func TestServerTriesAgainEveryFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 11*time.Second)
		defer cancel()
		s := newServer(t, Options{Address: somewhere})
		s.listen = func(context.Context, netip.AddrPort) (net.Listener, error) {
			at = append(at, time.Since(start))
			return nil, errors.New("taken")
		}
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
		if len(at) != 3 || at[1] != 5*time.Second || at[2] != 10*time.Second {
			t.Errorf("tried at %v", at)
		}
	})
}

func TestServerThatMustNotFailEndsWithTheFirstFailure(t *testing.T) {
	s := newServer(t, Options{Address: somewhere, HardFail: true})
	listening(s, 1)
	if err := s.Run(t.Context()); err == nil || err.Error() != "serve answers on 192.0.2.1:10249: taken" {
		t.Errorf("no address to be had: %v", err)
	}
	made := listening(s, 0)
	go func() { (<-made).Close() }()
	if err := s.Run(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("listener lost: %v", err)
	}
}

func TestServerThatMustNotFailMayBeStopped(t *testing.T) {
	s := newServer(t, Options{Address: somewhere, HardFail: true})
	made := listening(s, 0)
	stop := running(t, s)
	<-made
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestServerLetsARequestEnd(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	s := newServer(t, Options{Address: somewhere, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-answer
		io.WriteString(w, "late")
	})})
	made := listening(s, 0)
	stop := running(t, s)
	base := "http://" + (<-made).Addr().String()
	go func() {
		<-asked
		close(answer)
		stop()
	}()
	if status, body := get(t, base); status != 200 || body != "late" {
		t.Errorf("status %d, %q", status, body)
	}
}

func TestServerWithoutAnAddressServesNothing(t *testing.T) {
	for _, address := range []netip.AddrPort{{}, netip.MustParseAddrPort("127.0.0.1:0")} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, Options{Address: address, HardFail: true})
			s.listen = func(context.Context, netip.AddrPort) (net.Listener, error) {
				t.Errorf("%s: listens", address)
				return nil, errors.New("no")
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			if err := s.Run(ctx); err != nil || ctx.Err() == nil {
				t.Errorf("%s: returns %v, before it is to stop", address, err)
			}
		})
	}
}

// kube-proxy listens so for its bind addresses, too.
func TestAnUnspecifiedAddressStandsForBothFamilies(t *testing.T) {
	for address, reached := range map[string]map[string]bool{
		"0.0.0.0:0":   {"127.0.0.1": true, "::1": true},
		"[::]:0":      {"127.0.0.1": true, "::1": true},
		"127.0.0.1:0": {"127.0.0.1": true, "::1": false},
		"[::1]:0":     {"127.0.0.1": false, "::1": true},
	} {
		l, err := listen(t.Context(), netip.MustParseAddrPort(address))
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).AddrPort().Port()
		for to, want := range reached {
			conn, err := net.Dial("tcp", netip.AddrPortFrom(netip.MustParseAddr(to), port).String())
			if (err == nil) != want {
				t.Errorf("%s, to %s: %v, want reached %t", address, to, err, want)
			}
			if err == nil {
				conn.Close()
			}
		}
		l.Close()
	}
}

func TestATakenAddressIsNamed(t *testing.T) {
	first, err := listen(t.Context(), netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	address := netip.MustParseAddrPort(first.Addr().String())
	if _, err := listen(t.Context(), address); err == nil || !strings.Contains(err.Error(), address.String()+": bind: address already in use") {
		t.Errorf("got %v", err)
	}
}

func TestServerNamesTheFieldThatCannotBeUsed(t *testing.T) {
	for want, o := range map[string]Options{
		"serve: Name is missing":               {Handler: answers},
		"serve metrics: Handler is missing":    {Name: "metrics"},
		"serve metrics: Retry -1s is negative": {Name: "metrics", Handler: answers, Retry: -time.Second},
	} {
		if _, err := New(o); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestWhoConnectsBeforeRunIsServedByIt(t *testing.T) {
	s, err := New(Options{Name: "a test", Address: netip.MustParseAddrPort("127.0.0.1:1"), Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "served")
	})})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	s.listen = func(context.Context, netip.AddrPort) (net.Listener, error) { calls++; return l, nil }
	s.Listen(t.Context())
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(answer), "served") {
		t.Errorf("%q, %v", answer, err)
	}
	stop()
	if err := <-ended; err != nil || calls != 1 {
		t.Errorf("%v; listened %d times", err, calls)
	}
}

func TestWhatListenCannotDoIsLeftToRun(t *testing.T) {
	s, err := New(Options{Name: "a test", Address: netip.MustParseAddrPort("127.0.0.1:1"), Handler: http.NotFoundHandler(), HardFail: true})
	if err != nil {
		t.Fatal(err)
	}
	taken := errors.New("taken")
	s.listen = func(context.Context, netip.AddrPort) (net.Listener, error) { return nil, taken }
	s.Listen(t.Context())
	if err := s.Run(t.Context()); !errors.Is(err, taken) {
		t.Errorf("error is %v", err)
	}
}
