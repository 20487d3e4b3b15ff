package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// The settings that say how to reach the API server, as errors name them.
const (
	kubeconfigSetting = "--kubeconfig (clientConnection.kubeconfig)"
	masterSetting     = "--master"
)

// accountAuthority is where a pod has the certificates of its API server
// (rootCAFile in rest/config.go, client-go 0.37).
const accountAuthority = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"

// clientConfig finds the API server: by the kubeconfig file, by --master over
// it, or by the service account of the pod that this runs in. The token of an
// account, or of a tokenFile, is read again when it has been renewed.
func clientConfig(c config.Config) (*rest.Config, error) {
	client, err := foundConfig(c)
	if err != nil {
		return nil, err
	}
	if err := tuned(client, c.ClientConnection); err != nil {
		return nil, err
	}
	return client, nil
}

// tuned gives client the media types and the rate that the user wants.
func tuned(client *rest.Config, c config.ClientConnection) error {
	if known := []string{"", runtime.ContentTypeProtobuf, runtime.ContentTypeJSON}; !slices.Contains(known, c.ContentType) {
		return fmt.Errorf("--kube-api-content-type (clientConnection.contentType): %q: must be %s or %s",
			c.ContentType, runtime.ContentTypeProtobuf, runtime.ContentTypeJSON)
	}
	if c.QPS > 0 && c.Burst <= 0 {
		return fmt.Errorf("--kube-api-burst (clientConnection.burst): %d: must be at least 1 with clientConnection.qps %v", c.Burst, c.QPS)
	}
	client.AcceptContentTypes, client.ContentType = c.AcceptContentTypes, c.ContentType
	client.QPS, client.Burst = c.QPS, c.Burst
	client.UserAgent = rest.DefaultKubernetesUserAgent()
	return nil
}

func foundConfig(c config.Config) (*rest.Config, error) {
	if c.ClientConnection.Kubeconfig == "" && c.Master == "" {
		return accountConfig()
	}
	from := masterSetting
	if c.ClientConnection.Kubeconfig != "" {
		from = kubeconfigSetting
		if err := readable(from, c.ClientConnection.Kubeconfig); err != nil {
			return nil, err
		}
		from += ": " + c.ClientConnection.Kubeconfig
	}
	client, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: c.ClientConnection.Kubeconfig},
		&clientcmd.ConfigOverrides{ClusterInfo: api.Cluster{Server: c.Master}}).ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf("%s: no cluster is configured in it", from)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	if err := usable(client); err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return client, nil
}

// usable says what would make every request fail.
func usable(client *rest.Config) error {
	if p := client.ExecProvider; p != nil {
		return fmt.Errorf("users.user.exec: the credentials are made by the program %s, and nlproxy runs no other program; "+
			"give a token, a tokenFile or a client certificate", p.Command)
	}
	if p := client.AuthProvider; p != nil {
		return fmt.Errorf("users.user.auth-provider: %s is not known; give a token, a tokenFile or a client certificate", p.Name)
	}
	if err := loadable(client); err != nil {
		return fmt.Errorf("certificate-authority %s, client-certificate %s, client-key %s: %w",
			named(client.CAFile), named(client.CertFile), named(client.KeyFile), err)
	}
	if _, _, err := rest.DefaultServerUrlFor(client); err != nil {
		return fmt.Errorf("server %q: %w", client.Host, err)
	}
	return nil
}

// loadable reads the certificates. Client-go itself reads those of a client that
// are in files only with the first request, to find new ones there later.
func loadable(client *rest.Config) error {
	if _, err := rest.TLSConfigFor(client); err != nil {
		return err
	}
	if client.CertFile == "" || client.KeyFile == "" {
		return nil
	}
	_, err := tls.LoadX509KeyPair(client.CertFile, client.KeyFile)
	return err
}

func named(file string) string {
	if file == "" {
		return "without a file"
	}
	return "in " + file
}

// accountConfig is that of a pod's service account. A missing file of it is an
// error here: without the certificates no API server would ever be trusted.
func accountConfig() (*rest.Config, error) {
	if os.Getenv("KUBERNETES_SERVICE_HOST") == "" || os.Getenv("KUBERNETES_SERVICE_PORT") == "" {
		return nil, errors.New("no source of objects: give " + kubeconfigSetting + ", " + masterSetting + " or --manifests, " +
			"or run in a pod with a service account (KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set)")
	}
	_, err := cert.NewPool(accountAuthority)
	var client *rest.Config
	if err == nil {
		client, err = rest.InClusterConfig()
	}
	if err != nil {
		return nil, fmt.Errorf("service account of this pod, which counts without %s: %w", kubeconfigSetting, err)
	}
	return client, nil
}
