package config

import (
	"net"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kube-proxy/config/v1alpha1"
)

// Ports of the two servers where an address names none (pkg/cluster/ports in
// kube-proxy 1.37).
const (
	healthzPort = 10256
	metricsPort = 10249
)

// configSyncPeriod is how often kube-proxy's client hands it all objects anew.
const configSyncPeriod = 15 * time.Minute

// setDefaults fills in what o leaves empty, with the values of
// pkg/proxy/apis/config/v1alpha1/defaults.go in kube-proxy 1.37. There, as
// here, an explicit zero of a plain field counts as empty.
func setDefaults(o *v1alpha1.KubeProxyConfiguration) {
	setAddresses(o)
	setLateDefaults(o)

	fill(&o.IPTables.SyncPeriod.Duration, 30*time.Second)
	fill(&o.IPTables.MinSyncPeriod.Duration, time.Second)
	fill(&o.IPTables.LocalhostNodePorts, new(true))
	fill(&o.IPTables.MasqueradeBit, new(int32(14)))
	fill(&o.NFTables.MasqueradeBit, new(int32(14)))
	fill(&o.ConfigSyncPeriod.Duration, configSyncPeriod)
	fill(&o.OOMScoreAdj, new(int32(-999)))

	fill(&o.Conntrack.MaxPerCore, new(int32(32*1024)))
	fill(&o.Conntrack.Min, new(int32(128*1024)))
	fill(&o.Conntrack.TCPEstablishedTimeout, &metav1.Duration{Duration: 24 * time.Hour})
	fill(&o.Conntrack.TCPCloseWaitTimeout, &metav1.Duration{Duration: time.Hour})

	fill(&o.ClientConnection.ContentType, "application/vnd.kubernetes.protobuf")
	fill(&o.ClientConnection.QPS, 5)
	fill(&o.ClientConnection.Burst, 10)
	logsapi.SetRecommendedLoggingConfiguration(&o.Logging)
}

// setLateDefaults fills in what a flag may have emptied again
// (platformApplyDefaults in cmd/kube-proxy/app).
func setLateDefaults(o *v1alpha1.KubeProxyConfiguration) {
	fill(&o.Mode, v1alpha1.ProxyMode(ModeIPTables))
	fill(&o.DetectLocalMode, v1alpha1.LocalMode(DetectLocalByClusterCIDR))
	o.HealthzBindAddress = withPort(o.HealthzBindAddress, healthzPort)
	o.MetricsBindAddress = withPort(o.MetricsBindAddress, metricsPort)
}

// setAddresses fills in the addresses, those of the two servers in the family
// of the bind address.
func setAddresses(o *v1alpha1.KubeProxyConfiguration) {
	fill(&o.BindAddress, "0.0.0.0")
	healthz, metrics := "::", "::1"
	if bind, ok := parseAddr(o.BindAddress); ok && bind.Is4() {
		healthz, metrics = "0.0.0.0", "127.0.0.1"
	}
	fill(&o.HealthzBindAddress, healthz)
	fill(&o.MetricsBindAddress, metrics)
}

// withPort adds port to a bare address, and returns anything else as it is.
func withPort(addr string, port int) string {
	if _, ok := parseAddr(addr); !ok {
		return addr
	}
	return net.JoinHostPort(addr, strconv.Itoa(port))
}

func fill[T comparable](field *T, value T) {
	var empty T
	if *field == empty {
		*field = value
	}
}
