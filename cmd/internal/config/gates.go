package config

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
)

// Feature gates that something here depends on.
const (
	allowServiceExternalIPs = "AllowServiceExternalIPs"
	componentFlagz          = "ComponentFlagz"
	componentStatusz        = "ComponentStatusz"
	loggingAlphaOptions     = "LoggingAlphaOptions"
	loggingBetaOptions      = "LoggingBetaOptions"
)

// gatesTable has the feature gates of kube-proxy 1.37, as integration/peers/cmd/gates
// prints them.
//
//go:embed gates.txt
var gatesTable string

// gate is a feature gate.
type gate struct {
	// stage is ALPHA, BETA, GA or DEPRECATED.
	stage string
	// unset is the value of a gate that is not set, and the only one of a
	// gate that is locked.
	unset, locked bool
	// needs are gates without which this one cannot be true.
	needs []string
}

func knownGates() map[string]gate {
	gates := map[string]gate{}
	for line := range strings.Lines(gatesTable) {
		words := strings.Fields(line)
		g := gate{stage: words[1], unset: words[2] == "true", needs: words[3:]}
		if len(g.needs) > 0 && g.needs[0] == "locked" {
			g.locked, g.needs = true, g.needs[1:]
		}
		gates[words[0]] = g
	}
	return gates
}

// bulk are the gates that set those of a stage which are not set themselves.
func bulk() map[string]string {
	return map[string]string{"ALPHA": "AllAlpha", "BETA": "AllBeta"}
}

// checkGates returns the value of each gate, set or not. It refuses what
// kube-proxy refuses (SetFromMap in k8s.io/component-base/featuregate).
func checkGates(set map[string]bool, fs *findings) map[string]bool {
	known, of := knownGates(), bulk()
	on := make(map[string]bool, len(known))
	for name, g := range known {
		on[name] = g.unset
		if value, ok := set[of[g.stage]]; ok {
			on[name] = value
		}
	}
	wrong := false
	for _, name := range slices.Sorted(maps.Keys(set)) {
		value := set[name]
		g, ok := known[name]
		switch {
		case !ok:
			fs.refuse("featureGates."+name, "%t: must be a feature gate of kube-proxy 1.37", value)
		case g.locked && value != g.unset:
			fs.refuse("featureGates."+name, "%t: must be %t, to which this gate is locked", value, g.unset)
		default:
			on[name] = value
			continue
		}
		wrong = true
	}
	if !wrong {
		checkNeeds(known, on, fs)
	}
	return on
}

// checkNeeds refuses gates that are true beside one that they need and that is
// not.
func checkNeeds(known map[string]gate, on map[string]bool, fs *findings) {
	for _, name := range slices.Sorted(maps.Keys(known)) {
		without := slices.DeleteFunc(slices.Clone(known[name].needs), func(other string) bool { return on[other] })
		if on[name] && len(without) > 0 {
			fs.refuse("featureGates."+name, "true: must be false while %s is", strings.Join(without, " and "))
		}
	}
}

// foreign are the gates that kube-proxy and its client act upon in mode
// iptables and that nothing here depends on.
func foreign() []string {
	return []string{
		"AtomicFIFO",
		"ClientsAllowCARotation",
		"ClientsAllowCBOR",
		"ClientsAllowTLSCacheGC",
		"ClientsPreferCBOR",
		"ContextualLogging",
		"InOrderInformersBatchProcess",
		"InformerResourceVersion",
		"NativeHistograms",
		"UnlockWhileProcessingFIFO",
		"WatchListClient",
	}
}

// partial are the gates for others, with what those do here.
func partial() map[string]string {
	return map[string]string{"AllAlpha": "logging", "AllBeta": "logging, /statusz and /flagz"}
}

// noteGates tells of gates that do something to kube-proxy that they do not do
// here.
func noteGates(set map[string]bool, fs *findings) {
	known, in := knownGates(), partial()
	for _, name := range slices.Sorted(maps.Keys(set)) {
		switch {
		case in[name] != "":
			fs.note("featureGates."+name, "has an effect on %s alone", in[name])
		case set[name] != known[name].unset && slices.Contains(foreign(), name):
			fs.note("featureGates."+name, "has no effect")
		}
	}
}
