package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/nlproxy/nlproxy/cmd/internal/events"
	"github.com/nlproxy/nlproxy/watch"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/validation"
)

// newSource returns where objects come from, a directory or an API server, and
// the recorder of this node's events: nil, which records nothing, if no API
// server is followed.
func newSource(c config.Config, o watch.Options) (*watch.Source, *events.Recorder, error) {
	if c.Manifests != "" {
		s, err := directory(c.Manifests, o)
		return s, nil, err
	}
	client, err := clientConfig(c)
	if err != nil {
		return nil, nil, err
	}
	s, err := watch.API(client, o)
	if err != nil {
		return nil, nil, err
	}
	recorder, err := events.New(client, o.NodeName, events.Options{Logger: o.Logger})
	return s, recorder, err
}

func directory(manifests string, o watch.Options) (*watch.Source, error) {
	if manifests == "-" {
		return nil, errors.New("--manifests -: standard input is for the command plan; give a directory")
	}
	if err := readable("--manifests", manifests); err != nil {
		return nil, err
	}
	return watch.Directory(manifests, o)
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
		NodeName:       c.HostnameOverride,
		NodeNameOrigin: "the name is that of --hostname-override, hostnameOverride, and has to be that of this host's Node",
		NeedPodCIDRs:   c.DetectLocal.Mode == config.DetectLocalByNodeCIDR,
		Logger:         log,
	}
	if o.NodeName == "" && c.Manifests != "" {
		return o, nil
	}
	if o.NodeName != "" {
		return o, nodeName("--hostname-override (hostnameOverride)", o.NodeName)
	}
	name, err := os.Hostname()
	if err != nil {
		return o, fmt.Errorf("name of this host: %w", err)
	}
	o.NodeName = strings.ToLower(strings.TrimSpace(name))
	o.NodeNameOrigin = "the name is this host's; if its Node has another one, give that by --hostname-override, hostnameOverride"
	return o, nodeName("name of this host, in place of which --hostname-override (hostnameOverride) gives its Node's", o.NodeName)
}

// nodeName is an error that names where a name is from that no Node can have.
func nodeName(from, name string) error {
	if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
		return fmt.Errorf("%s: %q cannot be the name of a Node: %s", from, name, strings.Join(errs, "; "))
	}
	return nil
}
