// Command gates prints the feature gates of kube-proxy, as package config keeps
// them: one a line, with name, stage and default, "locked" if it cannot be set
// otherwise, and the gates without which it cannot be true.
package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"

	_ "k8s.io/kubernetes/cmd/kube-proxy/app" // registers them
)

func main() {
	gates, needs := feature.DefaultMutableFeatureGate.GetAll(), feature.DefaultMutableFeatureGate.Dependencies()
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		fmt.Println(line(name, gates[name], needs[name]))
	}
}

func line(name featuregate.Feature, spec featuregate.FeatureSpec, needs []featuregate.Feature) string {
	// A stage that is empty is that of general availability.
	words := []string{string(name), cmp.Or(string(spec.PreRelease), "GA"), fmt.Sprint(spec.Default)}
	if spec.LockToDefault {
		words = append(words, "locked")
	}
	for _, other := range slices.Sorted(slices.Values(needs)) {
		words = append(words, string(other))
	}
	return strings.Join(words, " ")
}
