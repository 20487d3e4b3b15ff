package watch

import (
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The validation of manifests refuses what an API server of Kubernetes 1.37
// refuses, of all that this proxy reads, because nobody else will: functions
// of apimachinery decide where the server uses them too.

// oneOf refuses a value that is none of allowed.
func oneOf[T ~string](at *field.Path, value T, allowed ...T) field.ErrorList {
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	if value == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	return field.ErrorList{field.NotSupported(at, value, allowed)}
}

func validateProtocol(at *field.Path, p corev1.Protocol) field.ErrorList {
	return oneOf(at, p, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
}

func validatePortNumber(at *field.Path, n int32) field.ErrorList {
	return invalid(at, n, validation.IsValidPortNum(int(n)))
}

// validatePortName refuses a name that is no DNS label, or is among names; it
// adds it to them.
func validatePortName(at *field.Path, name string, names map[string]bool) field.ErrorList {
	if names[name] {
		return field.ErrorList{field.Duplicate(at, name)}
	}
	names[name] = true
	if name == "" {
		return nil
	}
	return invalid(at, name, validation.IsDNS1123Label(name))
}

func validateNodeName(at *field.Path, name string) field.ErrorList {
	return invalid(at, name, apivalidation.NameIsDNSSubdomain(name, false))
}

// invalid makes an error of each message about a value.
func invalid(at *field.Path, value any, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, m := range messages {
		errs = append(errs, field.Invalid(at, value, m))
	}
	return errs
}

func validateIP(at *field.Path, s string) field.ErrorList {
	const strict = true
	return validation.IsValidIPForLegacyField(at, s, strict, nil)
}

func validateCIDR(at *field.Path, s string) field.ErrorList {
	const strict = true
	return validation.IsValidCIDRForLegacyField(at, strings.TrimSpace(s), strict, nil)
}

// validateReachable refuses addresses that mean something else on every host.
func validateReachable(at *field.Path, s string) field.ErrorList {
	if errs := validateIP(at, s); len(errs) > 0 {
		return errs
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return field.ErrorList{field.Invalid(at, s, err.Error())}
	}
	for _, special := range []struct {
		is   bool
		what string
	}{
		{a.IsUnspecified(), "the unspecified address"},
		{a.IsLoopback(), "a loopback address"},
		{a.IsLinkLocalUnicast(), "a link-local address"},
		{a.IsLinkLocalMulticast(), "a link-local multicast address"},
	} {
		if special.is {
			return field.ErrorList{field.Invalid(at, s, "may not be "+special.what)}
		}
	}
	return nil
}

// each applies check to every element of list.
func each[T any](at *field.Path, list []T, check func(*field.Path, T) field.ErrorList) field.ErrorList {
	var errs field.ErrorList
	for i, v := range list {
		errs = append(errs, check(at.Index(i), v)...)
	}
	return errs
}
