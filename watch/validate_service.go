package watch

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// validateService refuses what pkg/apis/core/validation refuses (Kubernetes
// 1.37), and a Service without a cluster IP, which a server would allocate.
func validateService(svc *corev1.Service) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&svc.ObjectMeta, true, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	at, spec := field.NewPath("spec"), &svc.Spec
	errs = append(errs, oneOf(at.Child("type"), spec.Type, corev1.ServiceTypeClusterIP,
		corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName)...)
	errs = append(errs, validateServicePorts(at.Child("ports"), spec)...)
	for _, check := range []func(*field.Path, *corev1.ServiceSpec) field.ErrorList{
		validateClusterIPs, validateAffinity, validateExternal, validateInternalPolicy, validateSourceRanges,
	} {
		errs = append(errs, check(at, spec)...)
	}
	return append(errs, validateIngress(field.NewPath("status", "loadBalancer", "ingress"), svc)...)
}

func headless(spec *corev1.ServiceSpec) bool { return spec.ClusterIP == corev1.ClusterIPNone }

func validateServicePorts(at *field.Path, spec *corev1.ServiceSpec) field.ErrorList {
	if len(spec.Ports) == 0 && !headless(spec) && spec.Type != corev1.ServiceTypeExternalName {
		return field.ErrorList{field.Required(at, "")}
	}
	names := map[string]bool{}
	errs := each(at, spec.Ports, func(at *field.Path, p corev1.ServicePort) field.ErrorList {
		var errs field.ErrorList
		if p.Name == "" && len(spec.Ports) > 1 {
			errs = append(errs, field.Required(at.Child("name"), "there are several ports"))
		} else {
			errs = validatePortName(at.Child("name"), p.Name, names)
		}
		return append(errs, validateServicePort(at, p, spec.Type)...)
	})
	return append(errs, validateDistinct(at, spec.Ports)...)
}

func validateServicePort(at *field.Path, p corev1.ServicePort, t corev1.ServiceType) field.ErrorList {
	errs := validatePortNumber(at.Child("port"), p.Port)
	errs = append(errs, validateProtocol(at.Child("protocol"), p.Protocol)...)
	target := at.Child("targetPort")
	if p.TargetPort.Type == intstr.String {
		errs = append(errs, invalid(target, p.TargetPort.StrVal, validation.IsValidPortName(p.TargetPort.StrVal))...)
	} else if p.TargetPort.IntVal != p.Port {
		errs = append(errs, validatePortNumber(target, p.TargetPort.IntVal)...)
	}
	switch node := at.Child("nodePort"); {
	case p.NodePort == 0:
	case t == corev1.ServiceTypeClusterIP:
		errs = append(errs, field.Forbidden(node, "may not be used when `type` is 'ClusterIP'"))
	default:
		errs = append(errs, validatePortNumber(node, p.NodePort)...)
	}
	return errs
}

// validateDistinct refuses two ports with one number, or one node port, of the
// same protocol.
func validateDistinct(at *field.Path, ports []corev1.ServicePort) field.ErrorList {
	type number struct {
		protocol corev1.Protocol
		field    string
		port     int32
	}
	seen := map[number]bool{}
	return each(at, ports, func(at *field.Path, p corev1.ServicePort) field.ErrorList {
		var errs field.ErrorList
		for _, n := range []number{{p.Protocol, "port", p.Port}, {p.Protocol, "nodePort", p.NodePort}} {
			if n.port != 0 && seen[n] {
				errs = append(errs, field.Duplicate(at.Child(n.field), n.port))
			}
			seen[n] = true
		}
		return errs
	})
}

func validateClusterIPs(at *field.Path, spec *corev1.ServiceSpec) field.ErrorList {
	ips := at.Child("clusterIPs")
	if spec.Type == corev1.ServiceTypeExternalName {
		if len(spec.ClusterIPs) > 0 || spec.ClusterIP != "" {
			return field.ErrorList{field.Forbidden(ips, "may not be set for ExternalName services")}
		}
		return nil
	}
	switch {
	case len(spec.ClusterIPs) == 0:
		return field.ErrorList{field.Required(ips, "there is no server to allocate one")}
	case spec.ClusterIPs[0] != spec.ClusterIP:
		return field.ErrorList{field.Invalid(ips, spec.ClusterIPs, "first value must match `clusterIP`")}
	case headless(spec):
		return validateHeadless(ips, spec)
	}
	if errs := each(ips, spec.ClusterIPs, validateIP); len(errs) > 0 {
		return errs
	}
	return append(validateFamilies(at, spec), validateStack(at, spec)...)
}

func validateHeadless(ips *field.Path, spec *corev1.ServiceSpec) field.ErrorList {
	if len(spec.ClusterIPs) > 1 {
		return field.ErrorList{field.Invalid(ips, spec.ClusterIPs, "'None' must be the first and only value")}
	}
	if spec.Type == corev1.ServiceTypeNodePort || spec.Type == corev1.ServiceTypeLoadBalancer {
		return field.ErrorList{field.Invalid(ips.Index(0), spec.ClusterIP, "may not be 'None' for this type")}
	}
	return nil
}

// validateFamilies refuses a family that is there twice, and addresses that are
// not of the family that they should have.
func validateFamilies(at *field.Path, spec *corev1.ServiceSpec) field.ErrorList {
	families := at.Child("ipFamilies")
	seen := map[corev1.IPFamily]bool{}
	errs := each(families, spec.IPFamilies, func(at *field.Path, f corev1.IPFamily) field.ErrorList {
		if seen[f] {
			return field.ErrorList{field.Duplicate(at, f)}
		}
		seen[f] = true
		return oneOf(at, f, corev1.IPv4Protocol, corev1.IPv6Protocol)
	})
	if len(errs) > 0 {
		return errs
	}
	if len(spec.ClusterIPs) < len(spec.IPFamilies) {
		errs = append(errs, field.Required(at.Child("clusterIPs").Index(len(spec.ClusterIPs)),
			"there is no server to allocate an address for each of `ipFamilies`"))
	}
	for i := range min(len(spec.ClusterIPs), len(spec.IPFamilies)) {
		a, err := parseAddr(spec.ClusterIPs[i])
		if err == nil && model.FamilyOf(a).String() != string(spec.IPFamilies[i]) {
			errs = append(errs, field.Invalid(at.Child("clusterIPs").Index(i), spec.ClusterIPs[i],
				"is not of the family in `ipFamilies`"))
		}
	}
	return errs
}

func validateStack(at *field.Path, spec *corev1.ServiceSpec) field.ErrorList {
	policy := at.Child("ipFamilyPolicy")
	errs := oneOf(policy, *spec.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack,
		corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack)
	if *spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack && len(spec.ClusterIPs) > 1 {
		errs = append(errs, field.Invalid(policy, *spec.IPFamilyPolicy, "there is more than one cluster IP"))
	}
	return errs
}

func validateAffinity(at *field.Path, spec *corev1.ServiceSpec) field.ErrorList {
	errs := oneOf(at.Child("sessionAffinity"), spec.SessionAffinity, corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP)
	if spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return errs
	}
	seconds := *spec.SessionAffinityConfig.ClientIP.TimeoutSeconds
	timeout := at.Child("sessionAffinityConfig", "clientIP", "timeoutSeconds")
	return append(errs, invalid(timeout, seconds, validation.IsInRange(int(seconds), 1, maxAffinity))...)
}

func validateExternal(at *field.Path, spec *corev1.ServiceSpec) field.ErrorList {
	errs := each(at.Child("externalIPs"), spec.ExternalIPs, validateReachable)
	policy := at.Child("externalTrafficPolicy")
	if reachedFromOutside(spec) {
		errs = append(errs, oneOf(policy, spec.ExternalTrafficPolicy,
			corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)...)
	} else if spec.ExternalTrafficPolicy != "" {
		errs = append(errs, field.Invalid(policy, spec.ExternalTrafficPolicy, "nothing external leads to this service"))
	}
	check := at.Child("healthCheckNodePort")
	switch local := spec.Type == corev1.ServiceTypeLoadBalancer && externalLocal(spec); {
	case spec.HealthCheckNodePort == 0:
	case local:
		errs = append(errs, validatePortNumber(check, spec.HealthCheckNodePort)...)
	default:
		errs = append(errs, field.Invalid(check, spec.HealthCheckNodePort,
			"only for `type` 'LoadBalancer' with `externalTrafficPolicy` 'Local'"))
	}
	return errs
}

func validateInternalPolicy(at *field.Path, spec *corev1.ServiceSpec) field.ErrorList {
	if spec.InternalTrafficPolicy == nil {
		return nil
	}
	return oneOf(at.Child("internalTrafficPolicy"), *spec.InternalTrafficPolicy,
		corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)
}

func validateSourceRanges(at *field.Path, spec *corev1.ServiceSpec) field.ErrorList {
	ranges := at.Child("loadBalancerSourceRanges")
	errs := each(ranges, spec.LoadBalancerSourceRanges, validateCIDR)
	if len(spec.LoadBalancerSourceRanges) > 0 && spec.Type != corev1.ServiceTypeLoadBalancer {
		errs = append(errs, field.Forbidden(ranges, "may only be used when `type` is 'LoadBalancer'"))
	}
	return errs
}

func validateIngress(at *field.Path, svc *corev1.Service) field.ErrorList {
	ingress := svc.Status.LoadBalancer.Ingress
	if svc.Spec.Type != corev1.ServiceTypeLoadBalancer && len(ingress) > 0 {
		return field.ErrorList{field.Forbidden(at, "may only be used when `spec.type` is 'LoadBalancer'")}
	}
	return each(at, ingress, func(at *field.Path, in corev1.LoadBalancerIngress) field.ErrorList {
		var errs field.ErrorList
		if in.IP != "" {
			errs = validateIP(at.Child("ip"), in.IP)
		}
		if in.IPMode == nil {
			return errs
		}
		if in.IP == "" {
			return append(errs, field.Forbidden(at.Child("ipMode"), "may not be specified when `ip` is not set"))
		}
		return append(errs, oneOf(at.Child("ipMode"), *in.IPMode, corev1.LoadBalancerIPModeVIP, corev1.LoadBalancerIPModeProxy)...)
	})
}
