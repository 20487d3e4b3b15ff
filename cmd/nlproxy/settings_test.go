package main

import (
	"net/netip"
	"reflect"
	"testing"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
)

func TestPlanOptions(t *testing.T) {
	cidrs := []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}
	ranges := []netip.Prefix{netip.MustParsePrefix("192.168.7.0/24")}
	for name, tc := range map[string]struct {
		config   config.Config
		counters map[string]bool
		liberal  bool
		want     plan.Options
	}{
		"cluster range": {
			config: config.Config{MasqueradeBit: 20, MasqueradeAll: true, AllowServiceExternalIPs: true,
				DetectLocal: config.DetectLocal{Mode: config.DetectLocalByClusterCIDR, ClusterCIDRs: cidrs}},
			want: plan.Options{MasqueradeBit: 20, MasqueradeAll: true, DropInvalid: true,
				Detect: plan.Detect{Mode: plan.DetectClusterCIDR, ClusterCIDRs: cidrs}},
		},
		"node range": {
			config: config.Config{AllowServiceExternalIPs: true, DetectLocal: config.DetectLocal{Mode: config.DetectLocalByNodeCIDR}},
			want:   plan.Options{DropInvalid: true, Detect: plan.Detect{Mode: plan.DetectNodeCIDR}},
		},
		"bridge": {
			config: config.Config{AllowServiceExternalIPs: true, DetectLocal: config.DetectLocal{Mode: config.DetectLocalByBridge, BridgeInterface: "cbr0"}},
			want:   plan.Options{DropInvalid: true, Detect: plan.Detect{Mode: plan.DetectBridge, Interface: "cbr0"}},
		},
		"prefix": {
			config: config.Config{AllowServiceExternalIPs: true, DetectLocal: config.DetectLocal{Mode: config.DetectLocalByPrefix, InterfaceNamePrefix: "cali"}},
			want:   plan.Options{DropInvalid: true, Detect: plan.Detect{Mode: plan.DetectInterfacePrefix, Interface: "cali"}},
		},
		"node ports": {
			config: config.Config{AllowServiceExternalIPs: true, LocalhostNodePorts: true,
				NodePortAddresses: config.NodePortAddresses{Prefixes: ranges, Primary: true}},
			want: plan.Options{DropInvalid: true, NodePorts: plan.NodePorts{Prefixes: ranges, Primary: true, Localhost: true}},
		},
		"what the kernel has": {
			config:   config.Config{AllowServiceExternalIPs: true},
			counters: map[string]bool{iptables.InvalidDropped: true, iptables.LocalhostNodePorts: true},
			liberal:  true,
			want:     plan.Options{Counters: plan.Counters{InvalidDropped: true, LocalhostNodePorts: true}},
		},
		"no external IPs": {
			want: plan.Options{NoExternalIPs: true, DropInvalid: true},
		},
	} {
		if got := planOptions(tc.config, tc.counters, tc.liberal); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestBindAddressStandsInForTheNodes(t *testing.T) {
	v4, v6 := netip.MustParseAddr("192.168.7.1"), netip.MustParseAddr("fd00:7::1")
	other6 := netip.MustParseAddr("fd00:8::1")
	for name, tc := range map[string]struct {
		address netip.Addr
		want    []netip.Addr
	}{
		"none":             {netip.Addr{}, []netip.Addr{v4, v6}},
		"unspecified":      {netip.IPv4Unspecified(), []netip.Addr{v4, v6}},
		"of the other":     {other6, []netip.Addr{other6, v4}},
		"the one it has":   {v4, []netip.Addr{v4, v6}},
		"unspecified IPv6": {netip.IPv6Unspecified(), []netip.Addr{v4, v6}},
	} {
		n := model.Node{Addresses: []netip.Addr{v4, v6}}
		if got := bound(n, tc.address).Addresses; !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
		if n.Addresses[0] != v4 || n.Addresses[1] != v6 {
			t.Errorf("%s: the node itself was changed: %v", name, n.Addresses)
		}
	}
}
