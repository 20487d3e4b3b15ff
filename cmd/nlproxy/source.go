package main

import (
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
	if c.Manifests != "" {
		return watch.Directory(c.Manifests, o)
	}
	client, err := clientConfig(c)
	if err != nil {
		return nil, err
	}
	return watch.API(client, o)
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
	var client *rest.Config
	var err error
	if c.ClientConnection.Kubeconfig == "" && c.Master == "" {
		client, err = rest.InClusterConfig()
	} else {
		client, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			&clientcmd.ClientConfigLoadingRules{ExplicitPath: c.ClientConnection.Kubeconfig},
			&clientcmd.ConfigOverrides{ClusterInfo: api.Cluster{Server: c.Master}}).ClientConfig()
	}
	if err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	client.AcceptContentTypes = c.ClientConnection.AcceptContentTypes
	client.ContentType = c.ClientConnection.ContentType
	client.QPS, client.Burst = c.ClientConnection.QPS, c.ClientConnection.Burst
	client.UserAgent = rest.DefaultKubernetesUserAgent()
	return client, nil
}
