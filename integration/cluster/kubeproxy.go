package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

// healthz is where kube-proxy says that it is well, unless its configuration
// has another healthzBindAddress.
const healthz = "http://127.0.0.1:10256/healthz"

// StartKubeProxy starts kube-proxy with a KubeProxyConfiguration, in which
// {kubeconfig} stands for the path of a kubeconfig, and waits until it has
// programmed the kernel once. It programs it by iptables-nft, whatever the
// machine's own iptables is.
func (c *Cluster) StartKubeProxy(t testing.TB, config []byte) *lab.Process {
	t.Helper()
	text := strings.ReplaceAll(string(config), "{kubeconfig}", c.Kubeconfig(t, KubeProxy))
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	environment := append(os.Environ(), "PATH="+iptablesNFT(t)+string(os.PathListSeparator)+os.Getenv("PATH"))
	p := start(t, c.ns, environment, program(t, "kube-proxy"), "--config="+path)
	client := &http.Client{Transport: &http.Transport{DialContext: c.ns.DialContext}}
	t.Cleanup(client.CloseIdleConnections)
	c.await(t, p, "kube-proxy", func(ctx context.Context) error { return healthy(ctx, client) })
	return p
}

func healthy(ctx context.Context, client *http.Client) (err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, healthz, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s says %s", healthz, response.Status)
	}
	return nil
}

// iptablesNFT is a folder in which the iptables programs are those that
// program nf_tables: one program of several names.
func iptablesNFT(t testing.TB) string {
	t.Helper()
	labtest.Tools(t, "iptables-nft")
	found, err := exec.LookPath("iptables-nft")
	if err != nil {
		t.Fatal(err)
	}
	multi, err := filepath.EvalSymlinks(found)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, kind := range []string{"", "-save", "-restore"} {
			if err := os.Symlink(multi, filepath.Join(dir, family+kind)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}
