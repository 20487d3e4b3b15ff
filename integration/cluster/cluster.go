package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/nlproxy/nlproxy/integration/lab"
)

// Where the servers listen.
const (
	server    = "https://127.0.0.1:6443"
	etcd      = "http://127.0.0.1:2379"
	etcdPeers = "http://127.0.0.1:2380"
)

// The ranges from which the API server takes addresses of Services.
const (
	ServiceRangeIPv4 = "10.96.0.0/16"
	ServiceRangeIPv6 = "fd00:96::/108"
)

// patience is how long a server may take to be ready: five seconds on an idle
// machine.
const patience = 2 * time.Minute

// A Cluster is an etcd and an API server.
type Cluster struct {
	ns        *lab.Namespace
	dir       string
	bulk      bool
	apiserver *lab.Process
}

// Options say what a cluster is for. The zero value is right for tests.
type Options struct {
	// Bulk lifts the API server's limits on concurrent requests, so that
	// thousands of objects load in seconds.
	Bulk bool
}

// Start starts a cluster in ns, which has lo up, and waits until it is ready.
// It ends with t.
func Start(t testing.TB, ns *lab.Namespace, o Options) *Cluster {
	t.Helper()
	c := &Cluster{ns: ns, dir: t.TempDir(), bulk: o.Bulk}
	if err := writeSecrets(c.dir); err != nil {
		t.Fatal(err)
	}
	c.startEtcd(t)
	c.StartAPIServer(t)
	return c
}

func (c *Cluster) startEtcd(t testing.TB) {
	t.Helper()
	start(t, c.ns, nil, Program(t, "etcd"),
		"--data-dir="+filepath.Join(c.dir, "etcd"),
		"--listen-client-urls="+etcd,
		"--advertise-client-urls="+etcd,
		"--listen-peer-urls="+etcdPeers,
		"--initial-advertise-peer-urls="+etcdPeers,
		"--initial-cluster=default="+etcdPeers,
		"--unsafe-no-fsync",
		"--log-level=warn")
}

// StartAPIServer starts the API server again after KillAPIServer, with the
// data that it had, and waits until it is ready.
func (c *Cluster) StartAPIServer(t testing.TB) {
	t.Helper()
	c.apiserver = start(t, c.ns, nil, Program(t, "kube-apiserver"), c.apiserverFlags()...)
	c.await(t, c.apiserver, "the API server", func(ctx context.Context) error {
		client, err := kubernetes.NewForConfig(c.Config(Admin))
		if err != nil {
			return err
		}
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// KillAPIServer ends the API server as kill -9 does.
func (c *Cluster) KillAPIServer() { c.apiserver.Kill() }

func (c *Cluster) apiserverFlags() []string {
	key := filepath.Join(c.dir, "key")
	flags := []string{
		"--etcd-servers=" + etcd,
		"--service-cluster-ip-range=" + ServiceRangeIPv4 + "," + ServiceRangeIPv6,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=6443",
		"--cert-dir=" + filepath.Dir(c.certificate()),
		"--token-auth-file=" + filepath.Join(c.dir, "tokens"),
		"--authorization-mode=RBAC",
		"--service-account-key-file=" + key,
		"--service-account-signing-key-file=" + key,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--endpoint-reconciler-type=none",
		"--disable-admission-plugins=ServiceAccount",
		"--allow-privileged", // as in every cluster that runs kube-proxy in a pod
	}
	if c.bulk {
		flags = append(flags,
			"--enable-priority-and-fairness=false",
			"--max-requests-inflight=0",
			"--max-mutating-requests-inflight=0")
	}
	return flags
}

// await asks ready again and again until it is content, p has ended, or
// patience has.
func (c *Cluster) await(t testing.TB, p *lab.Process, name string, ready func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := awaitReady(ctx, p.Done(), ready); err != nil {
		t.Fatalf("%s is not ready: %v", name, err)
	}
}

func awaitReady(ctx context.Context, ended <-chan struct{}, ready func(context.Context) error) error {
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("it has ended; before: %w", err)
		case <-ctx.Done():
			return err
		case <-ticks.C:
		}
	}
}
