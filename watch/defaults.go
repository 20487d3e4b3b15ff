package watch

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// defaultService fills in what an API server would (pkg/apis/core/v1/
// defaults.go and pkg/registry/core/service/storage/alloc.go, Kubernetes
// 1.37), but for what it would have to allocate.
func defaultService(svc *corev1.Service) {
	svc.Namespace = orDefault(svc.Namespace)
	spec := &svc.Spec
	setDefault(&spec.Type, corev1.ServiceTypeClusterIP)
	setDefault(&spec.SessionAffinity, corev1.ServiceAffinityNone)
	for i := range spec.Ports {
		setDefault(&spec.Ports[i].Protocol, corev1.ProtocolTCP)
		setDefault(&spec.Ports[i].TargetPort, intstr.FromInt32(spec.Ports[i].Port))
	}
	defaultAffinity(spec)
	if spec.Type == corev1.ServiceTypeExternalName {
		return
	}
	if reachedFromOutside(spec) {
		setDefault(&spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	setDefault(&spec.InternalTrafficPolicy, new(corev1.ServiceInternalTrafficPolicyCluster))
	defaultClusterIPs(spec)
}

// setDefault sets a field that is not set.
func setDefault[T comparable](at *T, value T) {
	var zero T
	if *at == zero {
		*at = value
	}
}

func defaultAffinity(spec *corev1.ServiceSpec) {
	switch spec.SessionAffinity {
	case corev1.ServiceAffinityNone:
		spec.SessionAffinityConfig = nil
	case corev1.ServiceAffinityClientIP:
		config := spec.SessionAffinityConfig
		if config == nil || config.ClientIP == nil || config.ClientIP.TimeoutSeconds == nil {
			spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{
				ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(corev1.DefaultClientIPServiceAffinitySeconds)},
			}
		}
	}
}

// defaultClusterIPs makes clusterIP and clusterIPs agree where one is missing,
// and takes the families from the addresses.
func defaultClusterIPs(spec *corev1.ServiceSpec) {
	switch {
	case len(spec.ClusterIPs) == 0 && spec.ClusterIP != "":
		spec.ClusterIPs = []string{spec.ClusterIP}
	case len(spec.ClusterIPs) > 0:
		setDefault(&spec.ClusterIP, spec.ClusterIPs[0])
	}
	setDefault(&spec.IPFamilyPolicy, new(corev1.IPFamilyPolicySingleStack))
	for i := len(spec.IPFamilies); i < len(spec.ClusterIPs); i++ {
		if a, err := parseAddr(spec.ClusterIPs[i]); err == nil {
			spec.IPFamilies = append(spec.IPFamilies, corev1.IPFamily(model.FamilyOf(a).String()))
		}
	}
}

func defaultSlice(es *discoveryv1.EndpointSlice) {
	es.Namespace = orDefault(es.Namespace)
	for i := range es.Ports {
		setDefault(&es.Ports[i].Name, new(""))
		setDefault(&es.Ports[i].Protocol, new(corev1.ProtocolTCP))
	}
}

// defaultNode makes podCIDR and podCIDRs agree where the latter is missing.
func defaultNode(node *corev1.Node) {
	if len(node.Spec.PodCIDRs) == 0 && node.Spec.PodCIDR != "" {
		node.Spec.PodCIDRs = []string{node.Spec.PodCIDR}
	}
}
