package config

import (
	"math"
	"net/netip"
	"time"

	"k8s.io/kube-proxy/config/v1alpha1"
)

// check turns o, defaults filled in, into a Config. What it refuses is what
// pkg/proxy/apis/config/validation in kube-proxy 1.37 refuses, and settings of
// Windows.
func check(o *v1alpha1.KubeProxyConfiguration, fs *findings) Config {
	on := checkGates(o.FeatureGates, fs)
	checkRanges(o, fs)
	checkDurations(o, fs)
	checkHiddenMetrics(o.ShowHiddenMetricsForVersion, fs)
	checkWindows(o, fs)
	noteGates(o.FeatureGates, fs)
	noteOtherModes(o, fs)
	noteWithoutEffect(o, fs)
	return Config{
		ClientConnection: ClientConnection{
			Kubeconfig:         o.ClientConnection.Kubeconfig,
			AcceptContentTypes: o.ClientConnection.AcceptContentTypes,
			ContentType:        o.ClientConnection.ContentType,
			QPS:                o.ClientConnection.QPS,
			Burst:              int(o.ClientConnection.Burst),
		},
		Mode:                    mode(o.Mode, fs),
		HostnameOverride:        hostname(o.HostnameOverride, fs),
		BindAddress:             bindAddress(o.BindAddress, fs),
		DetectLocal:             detectLocal(o, fs),
		NodePortAddresses:       nodePortAddresses(o.NodePortAddresses, fs),
		MasqueradeBit:           uint8(*o.IPTables.MasqueradeBit),
		MasqueradeAll:           o.IPTables.MasqueradeAll,
		LocalhostNodePorts:      *o.IPTables.LocalhostNodePorts,
		AllowServiceExternalIPs: on[allowServiceExternalIPs],
		MinSyncPeriod:           o.IPTables.MinSyncPeriod.Duration,
		SyncPeriod:              o.IPTables.SyncPeriod.Duration,
		Conntrack:               conntrack(&o.Conntrack),
		HealthzBindAddress:      serverAddress("healthzBindAddress", o.HealthzBindAddress, fs),
		MetricsBindAddress:      serverAddress("metricsBindAddress", o.MetricsBindAddress, fs),
		OOMScoreAdj:             int(*o.OOMScoreAdj),
		Logging:                 checkLogging(&o.Logging, on, fs),
		BindAddressHardFail:     o.BindAddressHardFail,
		EnableProfiling:         o.EnableProfiling,
		ComponentStatusz:        on[componentStatusz],
		ComponentFlagz:          on[componentFlagz],
		published:               publish(o),
	}
}

func checkRanges(o *v1alpha1.KubeProxyConfiguration, fs *findings) {
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
			fs.refuse(r.field, "%d: must be from %d to %d", r.value, r.min, r.max)
		}
	}
}

func checkDurations(o *v1alpha1.KubeProxyConfiguration, fs *findings) {
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
			fs.refuse(d.field, "%v: must be 0 or more", d.value)
		case !d.zero && d.value <= 0:
			fs.refuse(d.field, "%v: must be more than 0", d.value)
		}
	}
	if least, most := o.IPTables.MinSyncPeriod.Duration, o.IPTables.SyncPeriod.Duration; least > most && most > 0 {
		fs.refuse("iptables.minSyncPeriod", "%v: must be at most iptables.syncPeriod, %v", least, most)
	}
}

// hiddenMetrics is the version whose metrics can be shown: that before 1.37.
const hiddenMetrics = "1.36"

func checkHiddenMetrics(version string, fs *findings) {
	if version != "" && version != hiddenMetrics {
		fs.refuse("showHiddenMetricsForVersion", "%q: must be %q or empty", version, hiddenMetrics)
	}
}

func mode(m v1alpha1.ProxyMode, fs *findings) Mode {
	switch m {
	case v1alpha1.ProxyMode(ModeIPTables):
	case "nftables", "ipvs":
		fs.refuse("mode", "%s: must be iptables, or empty for iptables: %[1]s is not served yet; --nl-mode=iptables serves this configuration in mode iptables", m)
	default:
		fs.refuse("mode", "%q: must be iptables, or empty for iptables", m)
	}
	return Mode(m)
}

func hostname(name string, fs *findings) string {
	normal := normalName(name)
	if name != "" && normal == "" {
		fs.refuse("hostnameOverride", "%q: must be the name of a node, or empty for the host's name", name)
	}
	return normal
}

func bindAddress(s string, fs *findings) netip.Addr {
	addr, ok := parseAddr(s)
	if !ok {
		fs.refuse("bindAddress", "%q: must be an IP address", s)
	}
	return addr
}

// serverAddress returns the zero value for no address, which only a port of 0
// leaves.
func serverAddress(field, s string, fs *findings) netip.AddrPort {
	addr, ok := parseAddrPort(s)
	if !ok && s != "" {
		fs.refuse(field, "%q: must be an IP address, or one with a port from 1 to 65535 (192.0.2.1:10256, [2001:db8::1]:10256)", s)
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
