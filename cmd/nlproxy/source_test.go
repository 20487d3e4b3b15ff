package main

import (
	"os"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"go.uber.org/zap"
)

func TestTheNodesNameIsGivenOrTheHosts(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		config     config.Config
		want, from string
	}{
		"given":                             {config.Config{HostnameOverride: "node07"}, "node07", "--hostname-override, hostnameOverride"},
		"given, with manifests":             {config.Config{HostnameOverride: "node07", Manifests: "/m"}, "node07", "--hostname-override"},
		"not given":                         {config.Config{}, strings.ToLower(host), "this host's"},
		"not given, and found in manifests": {config.Config{Manifests: "/m"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := sourceOptions(test.config, zap.NewNop())
			if err != nil {
				t.Fatal(err)
			}
			if o.NodeName != test.want || !strings.Contains(o.NodeNameOrigin, test.from) {
				t.Errorf("name is %q (%s), want %q of %s", o.NodeName, o.NodeNameOrigin, test.want, test.from)
			}
		})
	}
}

func TestANameThatNoNodeCanHaveIsRefused(t *testing.T) {
	for _, manifests := range []string{"", "/m"} {
		_, err := sourceOptions(config.Config{HostnameOverride: "my_host", Manifests: manifests}, zap.NewNop())
		if err == nil || !strings.HasPrefix(err.Error(), `--hostname-override (hostnameOverride): "my_host" cannot be the name of a Node: `) {
			t.Errorf("error is %v", err)
		}
	}
}
