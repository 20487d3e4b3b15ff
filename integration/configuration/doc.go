// Package configuration holds nlproxy's flags and configuration file against
// those of the real kube-proxy. Its tables say what nlproxy does with each: for
// its own tests, and for those of package config.
package configuration
