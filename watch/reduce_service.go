package watch

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// labelProxyName marks a Service that another proxy serves
// (pkg/proxy/apis/well_known_labels.go, Kubernetes 1.37).
const labelProxyName = "service.kubernetes.io/service-proxy-name"

// maxAffinity is the longest session affinity, in seconds, that the API allows.
const maxAffinity = 86400

// reduceService returns what matters of a Service, without endpoints, or nil
// if this proxy does not serve it: a headless one, an external name, or one
// for another proxy.
func reduceService(svc *corev1.Service) (*model.Service, []Problem) {
	if !served(svc) {
		return nil, nil
	}
	name := model.Name{Namespace: svc.Namespace, Name: svc.Name}
	f := &findings{object: object{kindService, name}}
	spec := &svc.Spec
	return &model.Service{
		Name:                name,
		Ports:               servicePorts(spec, f),
		ClusterIPs:          clusterIPs(spec, f),
		ExternalIPs:         externalIPs(spec.ExternalIPs, f),
		LoadBalancerIPs:     loadBalancerIPs(svc.Status.LoadBalancer.Ingress, f),
		SourceRanges:        sourceRanges(spec.LoadBalancerSourceRanges, f),
		InternalLocal:       internalLocal(spec),
		ExternalLocal:       externalLocal(spec),
		Affinity:            affinity(spec, f),
		HealthCheckNodePort: healthCheckNodePort(spec, f),
	}, f.list
}

func served(svc *corev1.Service) bool {
	_, other := svc.Labels[labelProxyName]
	return !other && svc.Spec.Type != corev1.ServiceTypeExternalName &&
		svc.Spec.ClusterIP != "" && svc.Spec.ClusterIP != corev1.ClusterIPNone
}

func servicePorts(spec *corev1.ServiceSpec, f *findings) []model.Port {
	all := make([]model.Port, 0, len(spec.Ports))
	for i, p := range spec.Ports {
		field := fmt.Sprintf("spec.ports[%d]", i)
		port, ok := servicePort(p, spec.Type, field, f)
		if !ok {
			continue
		}
		if slices.ContainsFunc(all, func(o model.Port) bool { return o.PortKey == port.PortKey }) {
			f.add(field+".name", "%q is there twice for %s", p.Name, p.Protocol)
			continue
		}
		all = append(all, port)
	}
	return all
}

func servicePort(p corev1.ServicePort, t corev1.ServiceType, field string, f *findings) (model.Port, bool) {
	protocol, err := protocolOf(p.Protocol)
	if err != nil {
		f.add(field+".protocol", "%v", err)
		return model.Port{}, false
	}
	number, err := parsePort(p.Port)
	if err != nil {
		f.add(field+".port", "%v", err)
		return model.Port{}, false
	}
	port := model.Port{PortKey: model.PortKey{Port: p.Name, Protocol: protocol}, Number: number}
	// A server gives every port of this type a node port; a manifest may not.
	if p.NodePort != 0 || t == corev1.ServiceTypeNodePort {
		if port.NodePort, err = parsePort(p.NodePort); err != nil {
			f.add(field+".nodePort", "%v", err)
		}
	}
	return port, true
}

// protocolOf reads a protocol; none is TCP, the API's default.
func protocolOf(p corev1.Protocol) (model.Protocol, error) {
	if p == "" {
		return model.TCP, nil
	}
	return model.ParseProtocol(string(p))
}

// clusterIPs returns one address for each of the service's families. An object
// without families, as servers before dual stack wrote them, has the families
// of its addresses.
func clusterIPs(spec *corev1.ServiceSpec, f *findings) []netip.Addr {
	if len(spec.ClusterIPs) == 0 {
		return clusterIP(nil, spec.ClusterIP, "spec.clusterIP", "", f)
	}
	var addrs []netip.Addr
	for i, s := range spec.ClusterIPs {
		var family corev1.IPFamily
		if len(spec.IPFamilies) > 0 {
			if i >= len(spec.IPFamilies) {
				break
			}
			family = spec.IPFamilies[i]
		}
		addrs = clusterIP(addrs, s, fmt.Sprintf("spec.clusterIPs[%d]", i), family, f)
	}
	return addrs
}

// clusterIP appends s to addrs if it is an address, of the family that it
// should have, of which there is none yet.
func clusterIP(addrs []netip.Addr, s, field string, family corev1.IPFamily, f *findings) []netip.Addr {
	a, err := parseAddr(s)
	switch {
	case err != nil:
		f.add(field, "%v", err)
	case family != "" && string(family) != model.FamilyOf(a).String():
		f.add(field, "%s is not an %s address, as spec.ipFamilies says", a, family)
	case len(model.OfFamily(addrs, model.FamilyOf(a))) > 0:
		f.add(field, "%s is a second %v address", a, model.FamilyOf(a))
	default:
		addrs = append(addrs, a)
	}
	return addrs
}

// externalIPs leaves out blank ones silently: servers have let them pass.
func externalIPs(list []string, f *findings) []netip.Addr {
	var addrs []netip.Addr
	for i, s := range list {
		if strings.TrimSpace(s) == "" {
			continue
		}
		a, err := parseAddr(s)
		if err != nil {
			f.add(fmt.Sprintf("spec.externalIPs[%d]", i), "%v", err)
			continue
		}
		addrs = append(addrs, a)
	}
	return addrs
}

// loadBalancerIPs returns the addresses whose traffic arrives here with them as
// its destination. To any other mode than VIP the balancer has the only claim.
func loadBalancerIPs(ingress []corev1.LoadBalancerIngress, f *findings) []netip.Addr {
	var addrs []netip.Addr
	for i, in := range ingress {
		if in.IP == "" || in.IPMode != nil && *in.IPMode != corev1.LoadBalancerIPModeVIP {
			continue
		}
		a, err := parseAddr(in.IP)
		if err != nil {
			f.add(fmt.Sprintf("status.loadBalancer.ingress[%d].ip", i), "%v", err)
			continue
		}
		addrs = append(addrs, a)
	}
	return addrs
}

// sourceRanges trims blanks, which the server's validation lets pass.
func sourceRanges(list []string, f *findings) []netip.Prefix {
	var ranges []netip.Prefix
	for i, s := range list {
		s = strings.TrimSpace(s)
		if s == "" {
			continue
		}
		p, err := parsePrefix(s)
		if err != nil {
			f.add(fmt.Sprintf("spec.loadBalancerSourceRanges[%d]", i), "%v", err)
			continue
		}
		ranges = append(ranges, p)
	}
	return ranges
}

func internalLocal(spec *corev1.ServiceSpec) bool {
	return spec.InternalTrafficPolicy != nil &&
		*spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal
}

// externalLocal heeds the external policy only where something external leads
// to the service.
func externalLocal(spec *corev1.ServiceSpec) bool {
	return spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal && reachedFromOutside(spec)
}

// reachedFromOutside is true if something external leads to a service.
func reachedFromOutside(spec *corev1.ServiceSpec) bool {
	switch spec.Type {
	case corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort:
		return true
	case corev1.ServiceTypeClusterIP, "":
		return len(spec.ExternalIPs) > 0
	}
	return false
}

func affinity(spec *corev1.ServiceSpec, f *findings) time.Duration {
	if spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return 0
	}
	const absent = corev1.DefaultClientIPServiceAffinitySeconds
	seconds := absent
	if c := spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		seconds = *c.ClientIP.TimeoutSeconds
	}
	if seconds < 1 || seconds > maxAffinity {
		f.add("spec.sessionAffinityConfig.clientIP.timeoutSeconds",
			"%d is not between 1 and %d; %d instead", seconds, maxAffinity, absent)
		seconds = absent
	}
	return time.Duration(seconds) * time.Second
}

func healthCheckNodePort(spec *corev1.ServiceSpec, f *findings) uint16 {
	if spec.Type != corev1.ServiceTypeLoadBalancer || !externalLocal(spec) {
		return 0
	}
	port, err := parsePort(spec.HealthCheckNodePort)
	if err != nil {
		f.add("spec.healthCheckNodePort", "%v", err)
	}
	return port
}
