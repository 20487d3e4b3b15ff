package main

import (
	"fmt"

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

func sourceOptions(c config.Config, log *zap.Logger) (watch.Options, error) {
	name, err := hostName(c)
	return watch.Options{
		NodeName:     name,
		NeedPodCIDRs: c.DetectLocal.Mode == config.DetectLocalByNodeCIDR,
		Logger:       log,
	}, err
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
