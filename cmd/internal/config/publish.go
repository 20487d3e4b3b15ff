package config

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kube-proxy/config/v1alpha1"
	"sigs.k8s.io/yaml"
)

// Published is the configuration as a KubeProxyConfiguration, for /configz: what
// this Config was made of, defaults filled in. Own flags have no place in it.
func (c Config) Published() v1alpha1.KubeProxyConfiguration { return *c.published.DeepCopy() }

// Flags are the flags of the command line with their values, given or not, for
// /flagz. As with kube-proxy, what counts beside a file is not in them.
func (c Config) Flags() map[string]string { return maps.Clone(c.flags) }

// YAML is Published as a file, for WriteConfigTo: reading it gives the same
// Config but for what only flags say.
func (c Config) YAML() ([]byte, error) { return yaml.Marshal(c.Published()) }

// publish brings o, defaults filled in, into the form in which kube-proxy 1.37
// writes it. It keeps the fields that are common to its modes in the place of
// the mode in use alone (conversion.go in pkg/proxy/apis/config/v1alpha1).
func publish(o *v1alpha1.KubeProxyConfiguration) v1alpha1.KubeProxyConfiguration {
	p := *o.DeepCopy()
	p.APIVersion, p.Kind = v1alpha1.SchemeGroupVersion.String(), "KubeProxyConfiguration"
	p.PortRange = ""
	p.IPVS.SyncPeriod, p.IPVS.MinSyncPeriod = metav1.Duration{}, metav1.Duration{}
	p.NFTables.SyncPeriod, p.NFTables.MinSyncPeriod = metav1.Duration{}, metav1.Duration{}
	p.NFTables.MasqueradeAll = false
	return p
}

// WithVerbosity returns c with another logging.verbosity, which is the one thing
// that can be changed of a process that runs.
func (c Config) WithVerbosity(v int) Config {
	c.Logging.Verbosity, c.published.Logging.Verbosity = v, logsapi.VerbosityLevel(v)
	return c
}
