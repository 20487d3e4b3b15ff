package config

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/kube-proxy/config/v1alpha1"
)

const allowServiceExternalIPs = "AllowServiceExternalIPs"

// gates are the feature gates that kube-proxy 1.37 reads on Linux, and AllAlpha
// and AllBeta. The value says what one does here.
func gates() map[string]string {
	const none = "has no effect"
	return map[string]string{
		allowServiceExternalIPs:               "",
		"AllAlpha":                            none,
		"AllBeta":                             none,
		"ComponentFlagz":                      none,
		"ComponentStatusz":                    none,
		"ContextualLogging":                   none,
		"KubeProxyIPVS":                       none,
		"KubeProxyNFTablesLocalhostNodePorts": none,
		"LoggingAlphaOptions":                 none,
		"LoggingBetaOptions":                  none,
		"MultiCIDRServiceAllocator":           none,
		"NFTablesNetlink":                     none,
		"PreferSameTrafficDistribution":       "has no effect: it is always on",
	}
}

// gate returns the value of a feature gate.
func gate(o *v1alpha1.KubeProxyConfiguration, name string, unset bool) bool {
	if on, ok := o.FeatureGates[name]; ok {
		return on
	}
	return unset
}

// notes are what is set and, unlike in kube-proxy, not acted upon.
func notes(o *v1alpha1.KubeProxyConfiguration) []string {
	var ns []string
	known := gates()
	for _, name := range slices.Sorted(maps.Keys(o.FeatureGates)) {
		switch effect, ok := known[name]; {
		case !ok:
			ns = append(ns, fmt.Sprintf("featureGates.%s: no such feature gate", name))
		case effect != "":
			ns = append(ns, fmt.Sprintf("featureGates.%s: %s", name, effect))
		}
	}
	for _, unused := range []struct {
		field string
		set   bool
	}{
		{"logging.options", o.Logging.Options.Text.SplitStream || o.Logging.Options.JSON.SplitStream},
		{"logging.vmodule", len(o.Logging.VModule) > 0},
	} {
		if unused.set {
			ns = append(ns, unused.field+": has no effect")
		}
	}
	return ns
}
