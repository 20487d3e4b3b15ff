package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/integration/lab"
)

// metrics is where kube-proxy counts, unless its configuration has another
// metricsBindAddress, and synced what it has for each family whose rules it has
// written. Its healthz says that it is well before it has written any.
const (
	metrics = "http://127.0.0.1:10249/metrics"
	synced  = "kubeproxy_sync_proxy_rules_last_timestamp_seconds{"
)

// StartKubeProxy is StartKubeProxyOn with IPTablesNFT.
func (c *Cluster) StartKubeProxy(t testing.TB, config []byte) *lab.Process {
	t.Helper()
	return c.StartKubeProxyOn(t, IPTablesNFT, config)
}

// StartKubeProxyOn starts kube-proxy with a KubeProxyConfiguration, in which
// {kubeconfig} stands for the path of a kubeconfig, and waits until it has
// programmed the kernel once. It finds the backend's programs, whatever the
// machine's own iptables is.
func (c *Cluster) StartKubeProxyOn(t testing.TB, b Backend, config []byte) *lab.Process {
	t.Helper()
	text := strings.ReplaceAll(string(config), "{kubeconfig}", c.Kubeconfig(t, KubeProxy))
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	environment := append(os.Environ(), "PATH="+b.path(t))
	p := start(t, c.ns, environment, Program(t, "kube-proxy"), "--config="+path)
	c.await(t, p, "kube-proxy", func(ctx context.Context) error { return programmed(ctx, c.ns) })
	return p
}

// programmed returns nil once kube-proxy has written the rules of both families.
func programmed(ctx context.Context, ns *lab.Namespace) error {
	got, err := ns.Request(ctx, http.MethodGet, metrics, "")
	if err != nil {
		return err
	}
	if n := strings.Count(got.Body, "\n"+synced); n < 2 {
		return fmt.Errorf("it has written the rules of %d families", n)
	}
	return nil
}
