package main

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
)

// kubeconfigOf writes a kubeconfig with a cluster and a user like that.
func kubeconfigOf(t *testing.T, cluster, user string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: %s}], users: [{name: u, user: %s}],
contexts: [{name: c, context: {cluster: c, user: u}}]}`, cluster, user)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// file writes a file of a test's own and returns its path.
func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// authority is a certificate that may sign others.
func authority(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

func connection(kubeconfig string) config.Config {
	return config.Config{ClientConnection: config.ClientConnection{
		Kubeconfig: kubeconfig, ContentType: "application/vnd.kubernetes.protobuf", QPS: 5, Burst: 10,
	}}
}

func TestClientConfigHonoursTheKubeconfigAndWhatIsOverIt(t *testing.T) {
	ca, token := file(t, "ca.crt", authority(t)), file(t, "token", "secret\n")
	c := connection(kubeconfigOf(t, "{server: https://192.0.2.1:6443, certificate-authority: "+ca+"}", "{tokenFile: "+token+"}"))
	c.ClientConnection.ContentType, c.ClientConnection.AcceptContentTypes = "application/json", "application/json"
	got, err := clientConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	if got.Host != "https://192.0.2.1:6443" || got.CAFile != ca || got.BearerTokenFile != token {
		t.Errorf("server %s, authority %s, token in %s", got.Host, got.CAFile, got.BearerTokenFile)
	}
	if got.ContentType != "application/json" || got.AcceptContentTypes != "application/json" || got.QPS != 5 || got.Burst != 10 {
		t.Errorf("content type %s, accepted %s, %v requests per second, %d at once", got.ContentType, got.AcceptContentTypes, got.QPS, got.Burst)
	}

	c.Master = "https://192.0.2.2:6443"
	got, err = clientConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	if got.Host != c.Master || got.CAFile != ca || got.BearerTokenFile != token {
		t.Errorf("with --master: server %s, authority %s, token in %s", got.Host, got.CAFile, got.BearerTokenFile)
	}

	c.ClientConnection.Kubeconfig = ""
	if got, err = clientConfig(c); err != nil || got.Host != c.Master || got.BearerTokenFile != "" {
		t.Errorf("with --master alone: %+v, %v", got, err)
	}
}

func TestClientConfigNamesWhatCannotBeUsed(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	garbage := file(t, "garbage", "garbage")
	const server = "{server: https://192.0.2.1:6443}"
	kubeconfig := func(cluster, user string) config.Config { return connection(kubeconfigOf(t, cluster, user)) }
	with := func(c config.Config, change func(*config.Config)) config.Config { change(&c); return c }
	good := kubeconfig(server, "{token: x}")
	for name, test := range map[string]struct {
		config config.Config
		want   []string
	}{
		"no file": {connection(missing), []string{"--kubeconfig", missing, "no such file"}},
		"no YAML": {connection(garbage), []string{"--kubeconfig", garbage}},
		"an authority that is missing": {
			kubeconfig("{server: https://192.0.2.1:6443, certificate-authority: "+missing+"}", "{token: x}"), []string{"--kubeconfig", missing, "no such file"},
		},
		"an authority that is none": {
			kubeconfig("{server: https://192.0.2.1:6443, certificate-authority: "+garbage+"}", "{token: x}"), []string{"--kubeconfig", "certificate-authority in " + garbage},
		},
		"a token that is missing":       {kubeconfig(server, "{tokenFile: "+missing+"}"), []string{"--kubeconfig", missing, "no such file"}},
		"a certificate that is missing": {kubeconfig(server, "{client-certificate: "+missing+", client-key: "+missing+"}"), []string{"--kubeconfig", missing, "no such file"}},
		"a certificate that is none":    {kubeconfig(server, "{client-certificate: "+garbage+", client-key: "+garbage+"}"), []string{"--kubeconfig", "client-certificate in " + garbage}},
		"a program": {
			kubeconfig(server, "{exec: {apiVersion: client.authentication.k8s.io/v1, command: aws-iam-authenticator, interactiveMode: Never}}"),
			[]string{"--kubeconfig", "users.user.exec", "the program aws-iam-authenticator", "runs no other program"},
		},
		"a provider":            {kubeconfig(server, "{auth-provider: {name: gcp}}"), []string{"--kubeconfig", "users.user.auth-provider", "gcp"}},
		"a server that is none": {kubeconfig("{server: 'https://[::1'}", "{token: x}"), []string{"--kubeconfig", "https://[::1"}},
		"a master that is none": {with(connection(""), func(c *config.Config) { c.Master = "https://[::1" }), []string{"--master", "https://[::1"}},
		"a content type": {
			with(good, func(c *config.Config) { c.ClientConnection.ContentType = "application/cbor" }),
			[]string{"--kube-api-content-type (clientConnection.contentType)", "application/cbor", "application/json"},
		},
		"no burst": {with(good, func(c *config.Config) { c.ClientConnection.Burst = 0 }), []string{"--kube-api-burst (clientConnection.burst): 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := clientConfig(test.config)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not name %q: %v", want, err)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

// TestAPodWithoutAServiceAccountIsTold runs where nobody has mounted one.
func TestAPodWithoutAServiceAccountIsTold(t *testing.T) {
	if _, err := os.Stat(accountAuthority); err == nil {
		t.Skipf("this is a pod: there is %s", accountAuthority)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	_, err := clientConfig(connection(""))
	if err == nil || !strings.Contains(err.Error(), "service account of this pod") || !strings.Contains(err.Error(), accountAuthority) {
		t.Errorf("error is %v", err)
	}
	t.Setenv("KUBERNETES_SERVICE_PORT", "")
	_, err = clientConfig(connection(""))
	if err == nil || !strings.Contains(err.Error(), "KUBERNETES_SERVICE_PORT is not set") {
		t.Errorf("error is %v", err)
	}
}
