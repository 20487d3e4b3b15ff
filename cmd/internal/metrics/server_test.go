package metrics

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

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

// running is a server that runs until the function it returns is called.
func running(t *testing.T, s *Server) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	return func() { cancel(); <-ended }
}

func newServer(t *testing.T, o ServerOptions) *Server {
	t.Helper()
	o.Handler = answers
	s, err := NewServer(o)
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

func TestServerServesMetricsAndNothingElse(t *testing.T) {
	s := newServer(t, ServerOptions{Address: somewhere})
	made := listening(s, 0)
	stop := running(t, s)
	base := "http://" + (<-made).Addr().String()
	if status, body := get(t, base+"/metrics"); status != 200 || body != "/metrics" {
		t.Errorf("status %d, %q", status, body)
	}
	if status, _ := get(t, base+"/"); status != 404 {
		t.Errorf("another path: status %d", status)
	}
	stop()
	if _, err := http.Get(base + "/metrics"); err == nil {
		t.Error("it answers after it was stopped")
	}
}

func TestServerTriesAgainAndWarnsOnce(t *testing.T) {
	core, logged := observer.New(zapcore.WarnLevel)
	s := newServer(t, ServerOptions{Address: somewhere, Retry: time.Millisecond, Logger: zap.New(core)})
	made := listening(s, 3)
	stop := running(t, s)
	if status, _ := get(t, "http://"+(<-made).Addr().String()+"/metrics"); status != 200 {
		t.Errorf("status %d", status)
	}
	stop()
	all := logged.All()
	if len(all) != 1 || all[0].ContextMap()["address"] != somewhere.String() || all[0].ContextMap()["error"] != "taken" {
		t.Errorf("logged %v", all)
	}
}

func TestServerLetsARequestEnd(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	s, err := NewServer(ServerOptions{Address: somewhere, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-answer
		io.WriteString(w, "late")
	})})
	if err != nil {
		t.Fatal(err)
	}
	made := listening(s, 0)
	stop := running(t, s)
	base := "http://" + (<-made).Addr().String()
	go func() {
		<-asked
		close(answer)
		stop()
	}()
	if status, body := get(t, base+"/metrics"); status != 200 || body != "late" {
		t.Errorf("status %d, %q", status, body)
	}
}

func TestServerWithoutAnAddressServesNothing(t *testing.T) {
	for _, address := range []netip.AddrPort{{}, netip.MustParseAddrPort("127.0.0.1:0")} {
		s := newServer(t, ServerOptions{Address: address})
		s.listen = func(context.Context, netip.AddrPort) (net.Listener, error) {
			t.Errorf("%s: listens", address)
			return nil, errors.New("no")
		}
		s.Run(t.Context())
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
	for want, o := range map[string]ServerOptions{
		"metrics server: Handler is missing":    {},
		"metrics server: Retry -1s is negative": {Handler: answers, Retry: -time.Second},
	} {
		if _, err := NewServer(o); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
