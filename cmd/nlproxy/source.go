package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/nlproxy/nlproxy/watch"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// newSource returns where objects come from: a directory or an API server.
func newSource(c config.Config, log *zap.Logger) (*watch.Source, error) {
	o, err := sourceOptions(c, log)
	if err != nil {
		return nil, err
	}
	if c.Manifests == "-" {
		return nil, errors.New("--manifests -: standard input is for the command plan; give a directory")
	}
	if c.Manifests != "" {
		if err := readable("--manifests", c.Manifests); err != nil {
			return nil, err
		}
		return watch.Directory(c.Manifests, o)
	}
	client, err := clientConfig(c)
	if err != nil {
		return nil, err
	}
	return watch.API(client, o)
}

// readable is an error that names the flag if its file or directory is not there.
func readable(flag, path string) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// sourceOptions says which node this is. Among manifests the only Node needs no
// name; an API server has to be asked by name, which is the host's if the user
// gives none.
func sourceOptions(c config.Config, log *zap.Logger) (watch.Options, error) {
	o := watch.Options{
		NodeName:     c.HostnameOverride,
		NeedPodCIDRs: c.DetectLocal.Mode == config.DetectLocalByNodeCIDR,
		Logger:       log,
	}
	if o.NodeName != "" || c.Manifests != "" {
		return o, nil
	}
	name, err := os.Hostname()
	if err != nil {
		return o, fmt.Errorf("name of this host: %w", err)
	}
	o.NodeName = strings.ToLower(strings.TrimSpace(name))
	return o, nil
}

// clientConfig finds the API server: by the kubeconfig file, by --master over
// it, or by the service account of the pod that this runs in.
func clientConfig(c config.Config) (*rest.Config, error) {
	client, err := foundConfig(c)
	if err != nil {
		return nil, err
	}
	client.AcceptContentTypes = c.ClientConnection.AcceptContentTypes
	client.ContentType = c.ClientConnection.ContentType
	client.QPS, client.Burst = c.ClientConnection.QPS, c.ClientConnection.Burst
	client.UserAgent = rest.DefaultKubernetesUserAgent()
	return client, nil
}

func foundConfig(c config.Config) (*rest.Config, error) {
	kubeconfig := c.ClientConnection.Kubeconfig
	if kubeconfig == "" && c.Master == "" {
		client, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, errors.New("no source of objects: give --kubeconfig (clientConnection.kubeconfig), --master or --manifests, " +
				"or run in a pod with a service account (KUBERNETES_SERVICE_HOST is not set)")
		}
		return client, err
	}
	if kubeconfig != "" {
		if err := readable("--kubeconfig (clientConnection.kubeconfig)", kubeconfig); err != nil {
			return nil, err
		}
	}
	client, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig},
		&clientcmd.ConfigOverrides{ClusterInfo: api.Cluster{Server: c.Master}}).ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf("--kubeconfig (clientConnection.kubeconfig): %s: no cluster is configured in it", kubeconfig)
	case err != nil:
		return nil, fmt.Errorf("--kubeconfig (clientConnection.kubeconfig), --master: %w", err)
	}
	return client, nil
}
