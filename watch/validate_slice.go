package watch

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// How many of each an EndpointSlice may hold (pkg/apis/discovery/validation,
// Kubernetes 1.37).
const (
	maxEndpoints  = 1000
	maxAddresses  = 100
	maxSlicePorts = 20000
	maxHints      = 8
)

// validateSlice refuses what pkg/apis/discovery/validation refuses.
func validateSlice(es *discoveryv1.EndpointSlice) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&es.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, oneOf(field.NewPath("addressType"), es.AddressType,
		discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN)...)
	names := map[string]bool{}
	errs = append(errs, atMost(maxSlicePorts, field.NewPath("ports"), es.Ports,
		func(at *field.Path, p discoveryv1.EndpointPort) field.ErrorList {
			errs := validatePortName(at.Child("name"), valueOf(p.Name), names)
			return append(errs, validateProtocol(at.Child("protocol"), valueOf(p.Protocol))...)
		})...)
	return append(errs, atMost(maxEndpoints, field.NewPath("endpoints"), es.Endpoints,
		func(at *field.Path, e discoveryv1.Endpoint) field.ErrorList {
			return validateEndpoint(at, e, es.AddressType)
		})...)
}

// atMost is each for a list that may be as long as limit.
func atMost[T any](limit int, at *field.Path, list []T, check func(*field.Path, T) field.ErrorList) field.ErrorList {
	if len(list) > limit {
		return field.ErrorList{field.TooMany(at, len(list), limit)}
	}
	return each(at, list, check)
}

func validateEndpoint(at *field.Path, e discoveryv1.Endpoint, t discoveryv1.AddressType) field.ErrorList {
	var errs field.ErrorList
	if len(e.Addresses) == 0 {
		errs = append(errs, field.Required(at.Child("addresses"), "must contain at least 1 address"))
	}
	errs = append(errs, atMost(maxAddresses, at.Child("addresses"), e.Addresses,
		func(at *field.Path, s string) field.ErrorList { return validateEndpointAddress(at, s, t) })...)
	if e.NodeName != nil {
		errs = append(errs, validateNodeName(at.Child("nodeName"), *e.NodeName)...)
	}
	if e.Hints == nil {
		return errs
	}
	errs = append(errs, atMost(maxHints, at.Child("hints", "forZones"), e.Hints.ForZones,
		func(at *field.Path, z discoveryv1.ForZone) field.ErrorList {
			return invalid(at.Child("name"), z.Name, validation.IsValidLabelValue(z.Name))
		})...)
	return append(errs, atMost(maxHints, at.Child("hints", "forNodes"), e.Hints.ForNodes,
		func(at *field.Path, n discoveryv1.ForNode) field.ErrorList {
			return validateNodeName(at.Child("name"), n.Name)
		})...)
}

func validateEndpointAddress(at *field.Path, s string, t discoveryv1.AddressType) field.ErrorList {
	family, ok := familyOf(t)
	if !ok {
		return nil
	}
	if errs := validateReachable(at, s); len(errs) > 0 {
		return errs
	}
	if _, err := parseAddrOf(family, s); err != nil {
		return field.ErrorList{field.Invalid(at, s, err.Error())}
	}
	return nil
}

// validateNode refuses what pkg/apis/core/validation refuses of a Node's pod
// CIDRs.
func validateNode(node *corev1.Node) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&node.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	at := field.NewPath("spec", "podCIDRs")
	errs = append(errs, each(at, node.Spec.PodCIDRs, validateCIDR)...)
	seen := map[model.Family]bool{}
	return append(errs, each(at, node.Spec.PodCIDRs, func(at *field.Path, s string) field.ErrorList {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil
		}
		family := model.FamilyOf(p.Addr())
		if seen[family] {
			return field.ErrorList{field.Invalid(at, s, fmt.Sprintf("is a second %v range", family))}
		}
		seen[family] = true
		return nil
	})...)
}
