package configuration

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/kube-proxy/config/v1alpha1"
)

// Outcome is what nlproxy does with a setting.
type Outcome int

const (
	// Honoured settings change what it does.
	Honoured Outcome = iota
	// Noted settings are accepted, and a note names them.
	Noted
	// Refused settings end it, with an error that names them.
	Refused
	// Unread settings are accepted in silence: kube-proxy has no use for them
	// in any mode.
	Unread
)

// A Setting gives a field, or a flag, a value that is good and not its default.
type Setting struct {
	// Name is the path of a field, or the name of a flag without hyphens.
	Name string
	// Value is YAML for a field. Instead is the value to compare it with,
	// where none is none.
	Value, Instead string
	// Beside is what the setting needs: flags, or fields in YAML, in which %s
	// stands for this one unless it can stand for itself.
	Beside  string
	Outcome Outcome
}

// Header begins each file.
const Header = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"

// Files are a file with the field, and one to compare it with.
func (s Setting) Files() (with, without string) {
	around := s.Beside
	names := strings.Split(s.Name, ".")
	sections, last := names[:len(names)-1], names[len(names)-1]
	if !strings.Contains(around, "%s") {
		around += strings.Join(append(sections, "%s"), ": {") + strings.Repeat("}", len(sections)) + "\n"
	}
	file := func(value string) string {
		if value != "" {
			value = last + ": " + value
		}
		return Header + fmt.Sprintf(around, value)
	}
	return file(s.Value), file(s.Instead)
}

// Args are a command line with the flag, and one to compare it with.
func (s Setting) Args() (with, without []string) {
	args := func(value string) []string {
		all := strings.Fields(s.Beside)
		if value != "" {
			all = append(all, "--"+s.Name+"="+value)
		}
		return all
	}
	return args(s.Value), args(s.Instead)
}

// Paths are those of all fields of a KubeProxyConfiguration that hold a value
// or a list.
func Paths() []string {
	return paths("", reflect.TypeFor[v1alpha1.KubeProxyConfiguration]())
}

func paths(prefix string, t reflect.Type) (all []string) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := prefix + name
		switch _, text := reflect.New(f.Type).Interface().(interface{ UnmarshalJSON([]byte) error }); {
		case f.Type.Kind() != reflect.Struct || text:
			all = append(all, at)
		case name == "":
			all = append(all, paths(prefix, f.Type)...)
		default:
			all = append(all, paths(at+".", f.Type)...)
		}
	}
	return all
}
