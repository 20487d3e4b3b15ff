package config

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"
)

// address is the value of a flag for an address, which check reads. As with
// kube-proxy, setting it to nothing leaves the default.
type address struct {
	at   *string
	kind string
}

func (a address) Set(s string) error {
	if s != "" {
		*a.at = s
	}
	return nil
}

func (a address) String() string {
	if a.at == nil { // pflag asks a zero value
		return ""
	}
	return *a.at
}

func (a address) Type() string { return a.kind }

// nodeName is the value of a flag for the name of a node.
type nodeName struct{ at *string }

func (n nodeName) Set(s string) error {
	name := normalName(s)
	if s != "" && name == "" {
		return errors.New("must be the name of a node, or empty for the host's name")
	}
	*n.at = name
	return nil
}

func (n nodeName) String() string { return address{at: n.at}.String() }

func (n nodeName) Type() string { return "string" }

// normalName brings a node's name into the form of the API, as kube-proxy does
// (GetHostname in k8s.io/component-helpers/node/util).
func normalName(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// Version is the value of the flag --version: "true" asks for the version in
// short and "raw" for all that is known of it; "false" for nothing.
type Version string

// BindVersion defines --version on fs, which takes what kube-proxy's takes but
// for a version to be reported instead.
func BindVersion(fs *pflag.FlagSet) *Version {
	v := Version("false")
	fs.VarPF(&v, "version", "", "print the version and end; --version=raw prints all that is known of it").NoOptDefVal = "true"
	return &v
}

// Set implements pflag.Value.
func (v *Version) Set(s string) error {
	switch strings.ToLower(s) {
	case "raw", "true", "false":
		*v = Version(strings.ToLower(s))
		return nil
	case "1", "t":
		*v = "true"
		return nil
	case "0", "f":
		*v = "false"
		return nil
	}
	return errors.New("must be true, false or raw: the version that is reported is that of the build")
}

// String implements pflag.Value.
func (v *Version) String() string { return string(*v) }

// Type implements pflag.Value.
func (v *Version) Type() string { return "version" }
