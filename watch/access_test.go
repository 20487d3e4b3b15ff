package watch

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"
)

func TestAPISpeaksTheFormatThatIsAskedFor(t *testing.T) {
	const protobuf, json = "application/vnd.kubernetes.protobuf", "application/json"
	for name, test := range map[string]struct{ content, accept, want string }{
		"nothing said":          {"", "", protobuf + "," + json},
		"protobuf":              {protobuf, "", protobuf + "," + json},
		"JSON":                  {json, "", json},
		"JSON is accepted":      {protobuf, json, json},
		"JSON before protobuf":  {protobuf, json + "," + protobuf, json + "," + protobuf},
		"protobuf is accepted":  {json, protobuf, protobuf},
		"nothing but preferred": {"", protobuf, protobuf},
	} {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer(t)
			server.put("services", webService())
			r := followBy(t, &rest.Config{Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{
				ContentType: test.content, AcceptContentTypes: test.accept,
			}}, Options{})
			r.until("the first snapshot", has("web"))
			server.put("services", webService(named("api")))
			r.until("a second service", has("web", "api"))
			got, _, _ := strings.Cut(<-server.accepts, ", */*")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("accepts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAllClientsShareOneRate(t *testing.T) {
	for name, test := range map[string]struct {
		qps, want float32
	}{"given": {7, 7}, "client-go's own": {0, rest.DefaultQPS}} {
		t.Run(name, func(t *testing.T) {
			limiter := withDefaults(&rest.Config{QPS: test.qps, Burst: 2}).RateLimiter
			if got := limiter.QPS(); got != test.want {
				t.Errorf("%v requests per second, want %v", got, test.want)
			}
			if first, second, third := limiter.TryAccept(), limiter.TryAccept(), limiter.TryAccept(); !first || !second || third {
				t.Errorf("three requests at once: %v, %v, %v; want a burst of two", first, second, third)
			}
		})
	}
	if limiter := withDefaults(&rest.Config{QPS: -1}).RateLimiter; limiter != nil {
		t.Errorf("limiter is %v for no limit", limiter)
	}
}

// warned waits for a warning that services cannot be listed, and returns its
// fields.
func (r *running) warned() map[string]any {
	r.t.Helper()
	return r.told("cannot list", zap.String("kind", kindService))
}

// told waits for a line with this in its message, and these fields, and returns
// all fields.
func (r *running) told(message string, fields ...zap.Field) map[string]any {
	r.t.Helper()
	for {
		lines := r.logs.FilterMessageSnippet(message)
		for _, f := range fields {
			lines = lines.FilterField(f)
		}
		if lines.Len() > 0 {
			return lines.All()[0].ContextMap()
		}
		select {
		case <-r.logged:
		case <-r.ctx.Done():
			r.t.Fatalf("waited in vain for %q; logs: %v", message, r.logs.All())
		}
	}
}

func TestAPINamesCredentialsThatAreRefused(t *testing.T) {
	server := newAPIServer(t)
	server.put("services", webService())
	token := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(token, []byte("old"), 0o600))
	server.estrange(true)
	r := followBy(t, &rest.Config{Host: server.URL, QPS: -1, BearerTokenFile: token}, Options{})
	if got := r.warned(); got["credentials"] != "token in "+token || got["server"] != server.URL {
		t.Errorf("warned with %v", got)
	}
	server.estrange(false)
	r.until("the first snapshot", has("web"))
}

func TestAPINamesAnAuthorityThatDidNotSign(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	r := followBy(t, &rest.Config{Host: server.URL, QPS: -1}, Options{})
	got := r.warned()
	if _, ok := r.Snapshot(); ok {
		t.Error("a snapshot of a server that is not trusted")
	}
	if got["certificateAuthority"] != "those of the host" || got["server"] != server.URL {
		t.Errorf("warned with %v", got)
	}
}

func TestHowASourceReachesItsServer(t *testing.T) {
	tls := func(c rest.TLSClientConfig) rest.Config { return rest.Config{TLSClientConfig: c} }
	for name, test := range map[string]struct {
		config rest.Config
		want   access
	}{
		"a pod": {
			rest.Config{Host: "https://10.96.0.1:443", BearerToken: "x", BearerTokenFile: "/t", TLSClientConfig: rest.TLSClientConfig{CAFile: "/ca"}},
			access{"https://10.96.0.1:443", "certificates in /ca", "token in /t"},
		},
		"a token in the kubeconfig":      {rest.Config{BearerToken: "x"}, access{"", "those of the host", "token in the kubeconfig"}},
		"a password":                     {rest.Config{Username: "u", Password: "p"}, access{"", "those of the host", "password of u"}},
		"a client certificate in a file": {tls(rest.TLSClientConfig{CertFile: "/c", CAData: []byte("x")}), access{"", "certificates in the kubeconfig", "certificate in /c"}},
		"a client certificate beside":    {tls(rest.TLSClientConfig{CertData: []byte("x")}), access{"", "those of the host", "certificate in the kubeconfig"}},
		"nothing":                        {rest.Config{}, access{"", "those of the host", "none"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := accessOf(&test.config); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}
