package config

import (
	"math"
	"net/netip"
	"strings"
	"time"

	"k8s.io/kube-proxy/config/v1alpha1"
)

// check turns o, defaults filled in, into a Config. What it refuses is what
// pkg/proxy/apis/config/validation in kube-proxy 1.37 refuses; that the field
// is of a mode other than iptables makes it unread there too.
func check(o *v1alpha1.KubeProxyConfiguration, ps *problems) Config {
	checkRanges(o, ps)
	checkDurations(o, ps)
	checkLogging(o, ps)
	return Config{
		ClientConnection: ClientConnection{
			Kubeconfig:         o.ClientConnection.Kubeconfig,
			AcceptContentTypes: o.ClientConnection.AcceptContentTypes,
			ContentType:        o.ClientConnection.ContentType,
			QPS:                o.ClientConnection.QPS,
			Burst:              int(o.ClientConnection.Burst),
		},
		Mode:                    mode(o.Mode, ps),
		HostnameOverride:        hostname(o.HostnameOverride, ps),
		BindAddress:             bindAddress(o.BindAddress, ps),
		DetectLocal:             detectLocal(o, ps),
		NodePortAddresses:       nodePortAddresses(o.NodePortAddresses, ps),
		MasqueradeBit:           uint8(*o.IPTables.MasqueradeBit),
		MasqueradeAll:           o.IPTables.MasqueradeAll,
		LocalhostNodePorts:      *o.IPTables.LocalhostNodePorts,
		AllowServiceExternalIPs: gate(o, allowServiceExternalIPs, true),
		MinSyncPeriod:           o.IPTables.MinSyncPeriod.Duration,
		SyncPeriod:              o.IPTables.SyncPeriod.Duration,
		ConfigSyncPeriod:        o.ConfigSyncPeriod.Duration,
		Conntrack:               conntrack(&o.Conntrack),
		HealthzBindAddress:      serverAddress("healthzBindAddress", o.HealthzBindAddress, ps),
		MetricsBindAddress:      serverAddress("metricsBindAddress", o.MetricsBindAddress, ps),
		OOMScoreAdj:             int(*o.OOMScoreAdj),
		Logging:                 Logging{Format: o.Logging.Format, Verbosity: int(o.Logging.Verbosity), FlushFrequency: o.Logging.FlushFrequency.Duration.Duration},
		BindAddressHardFail:     o.BindAddressHardFail,
		EnableProfiling:         o.EnableProfiling,
		ShowHiddenMetrics:       o.ShowHiddenMetricsForVersion != "",
		published:               publish(o),
	}
}

func checkRanges(o *v1alpha1.KubeProxyConfiguration, ps *problems) {
	for _, r := range []struct {
		field           string
		value, min, max int64
	}{
		{"clientConnection.burst", int64(o.ClientConnection.Burst), 0, math.MaxInt32},
		{"conntrack.maxPerCore", int64(*o.Conntrack.MaxPerCore), 0, math.MaxInt32},
		{"conntrack.min", int64(*o.Conntrack.Min), 0, math.MaxInt32},
		{"iptables.masqueradeBit", int64(*o.IPTables.MasqueradeBit), 0, 31},
		{"logging.verbosity", int64(o.Logging.Verbosity), 0, math.MaxInt32},
		{"oomScoreAdj", int64(*o.OOMScoreAdj), -1000, 1000},
	} {
		if r.value < r.min || r.value > r.max {
			ps.add(r.field, "%d: must be from %d to %d", r.value, r.min, r.max)
		}
	}
}

func checkDurations(o *v1alpha1.KubeProxyConfiguration, ps *problems) {
	for _, d := range []struct {
		field string
		value time.Duration
		zero  bool // whether 0 is allowed
	}{
		{"configSyncPeriod", o.ConfigSyncPeriod.Duration, false},
		{"conntrack.tcpCloseWaitTimeout", o.Conntrack.TCPCloseWaitTimeout.Duration, true},
		{"conntrack.tcpEstablishedTimeout", o.Conntrack.TCPEstablishedTimeout.Duration, true},
		{"conntrack.udpStreamTimeout", o.Conntrack.UDPStreamTimeout.Duration, true},
		{"conntrack.udpTimeout", o.Conntrack.UDPTimeout.Duration, true},
		{"iptables.minSyncPeriod", o.IPTables.MinSyncPeriod.Duration, true},
		{"iptables.syncPeriod", o.IPTables.SyncPeriod.Duration, false},
		{"logging.flushFrequency", o.Logging.FlushFrequency.Duration.Duration, false},
	} {
		switch {
		case d.zero && d.value < 0:
			ps.add(d.field, "%v: must be 0 or more", d.value)
		case !d.zero && d.value <= 0:
			ps.add(d.field, "%v: must be more than 0", d.value)
		}
	}
	if least, most := o.IPTables.MinSyncPeriod.Duration, o.IPTables.SyncPeriod.Duration; least > most && most > 0 {
		ps.add("iptables.minSyncPeriod", "%v: must be at most iptables.syncPeriod, %v", least, most)
	}
}

func checkLogging(o *v1alpha1.KubeProxyConfiguration, ps *problems) {
	switch o.Logging.Format {
	case "text", "json":
	default:
		ps.add("logging.format", "%q: must be text or json", o.Logging.Format)
	}
}

func mode(m v1alpha1.ProxyMode, ps *problems) Mode {
	switch m {
	case v1alpha1.ProxyMode(ModeIPTables):
	case "nftables", "ipvs":
		ps.add("mode", "%s is not served yet: must be iptables, or empty for iptables", m)
	default:
		ps.add("mode", "%q: must be iptables, or empty for iptables", m)
	}
	return Mode(m)
}

// hostname brings a node's name into the form of the API: kube-proxy trims and
// lowers it too (GetHostname in k8s.io/component-helpers/node/util).
func hostname(name string, ps *problems) string {
	trimmed := strings.ToLower(strings.TrimSpace(name))
	if name != "" && trimmed == "" {
		ps.add("hostnameOverride", "%q: must be the name of a node, or empty for the host's name", name)
	}
	return trimmed
}

func bindAddress(s string, ps *problems) netip.Addr {
	addr, ok := parseAddr(s)
	if !ok {
		ps.add("bindAddress", "%q: must be an IP address", s)
	}
	return addr
}

func serverAddress(field, s string, ps *problems) netip.AddrPort {
	addr, ok := parseAddrPort(s)
	if !ok {
		ps.add(field, "%q: must be an IP address, or one with a port from 1 to 65535 (192.0.2.1:10256, [2001:db8::1]:10256)", s)
	}
	return addr
}

func conntrack(o *v1alpha1.KubeProxyConntrackConfiguration) Conntrack {
	return Conntrack{
		MaxPerCore:            int(*o.MaxPerCore),
		Min:                   int(*o.Min),
		TCPBeLiberal:          o.TCPBeLiberal,
		TCPEstablishedTimeout: o.TCPEstablishedTimeout.Duration,
		TCPCloseWaitTimeout:   o.TCPCloseWaitTimeout.Duration,
		UDPTimeout:            o.UDPTimeout.Duration,
		UDPStreamTimeout:      o.UDPStreamTimeout.Duration,
	}
}
