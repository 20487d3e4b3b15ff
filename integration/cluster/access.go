package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A User is somebody whom the API server knows. Its value is its token.
type User string

// Admin may do everything. KubeProxy may do what the API server's own role
// system:node-proxier allows. ServiceAccount is kube-system/nlproxy, which
// may do nothing until a role is bound to it.
const (
	Admin          User = "admin-token"
	KubeProxy      User = "kube-proxy-token"
	ServiceAccount User = "nlproxy-token"
)

// tokens are the lines of the API server's --token-auth-file: token, name,
// id, groups.
var tokens = []string{
	string(Admin) + `,admin,1,system:masters`,
	string(KubeProxy) + `,system:kube-proxy,2,`,
	string(ServiceAccount) + `,system:serviceaccount:kube-system:nlproxy,3,"system:serviceaccounts,system:serviceaccounts:kube-system"`,
}

// Config is how u reaches the API server, from any goroutine, with no limit on
// its rate of requests.
func (c *Cluster) Config(u User) *rest.Config {
	return &rest.Config{
		Host:            server,
		BearerToken:     string(u),
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.certificate()},
		Dial:            c.ns.DialContext,
		QPS:             -1,
	}
}

// Client is a client of u's.
func (c *Cluster) Client(t testing.TB, u User) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config(u))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Kubeconfig is the path of a file by which a program in the cluster's
// namespace reaches the API server as u.
func (c *Cluster) Kubeconfig(t testing.TB, u User) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["lab"] = &clientcmdapi.Cluster{Server: server, CertificateAuthority: c.certificate()}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{Token: string(u)}
	config.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "user"}
	config.CurrentContext = "lab"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// certificate is the file in which the API server puts the certificate that it
// makes for itself.
func (c *Cluster) certificate() string { return filepath.Join(c.dir, "certs", "apiserver.crt") }

// writeSecrets writes what the API server needs to know users by.
func writeSecrets(dir string) error {
	list := strings.Join(tokens, "\n") + "\n"
	if err := os.WriteFile(filepath.Join(dir, "tokens"), []byte(list), 0o600); err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make the key of service accounts: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode the key of service accounts: %w", err)
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	return os.WriteFile(filepath.Join(dir, "key"), block, 0o600)
}
