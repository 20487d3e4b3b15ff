package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kube-proxy/config/v1alpha1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// decode reads a file into the published type. It goes through the document
// field by field, because kube-proxy's own decoder stops at the first value of
// a wrong type and, where that is a duration, does not say which field it is.
//
// lines holds the line of each field by its path. The error is for what is no
// YAML at all.
func decode(data []byte) (o v1alpha1.KubeProxyConfiguration, lines map[string]int, ps problems, err error) {
	// Two readers: the first gives values the meaning that kube-proxy gives
	// them (YAML 1.1, merge keys), the second knows lines.
	raw, err := yaml.YAMLToJSON(data)
	if err != nil {
		return o, nil, nil, err
	}
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(data, &root); err != nil {
		return o, nil, nil, err
	}
	lines = map[string]int{}
	index(&root, "", lines, &ps)
	if wrong := checkKind(raw); len(wrong) > 0 {
		return o, lines, wrong, nil
	}
	decodeStruct("", raw, reflect.ValueOf(&o).Elem(), &ps)
	return o, lines, ps, nil
}

// checkKind refuses another kind of object, of which nothing else is worth
// saying.
func checkKind(raw []byte) (ps problems) {
	var is metav1.TypeMeta
	// A value of a wrong type leaves its field empty, which is refused too.
	_ = json.Unmarshal(raw, &is)
	want := v1alpha1.SchemeGroupVersion.WithKind("KubeProxyConfiguration")
	if is.Kind != want.Kind {
		ps.add("kind", "%q: must be %s", is.Kind, want.Kind)
	}
	if version := want.GroupVersion().String(); is.APIVersion != version {
		ps.add("apiVersion", "%q: must be %s", is.APIVersion, version)
	}
	return ps
}

// index notes the line of each field, and each field that is there twice.
func index(n *yamlv3.Node, path string, lines map[string]int, ps *problems) {
	switch n.Kind {
	case yamlv3.DocumentNode:
		index(n.Content[0], path, lines, ps)
	case yamlv3.SequenceNode:
		for i, element := range n.Content {
			child := fmt.Sprintf("%s[%d]", path, i)
			lines[child] = element.Line
			index(element, child, lines, ps)
		}
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			child := join(path, key.Value)
			if first, twice := lines[child]; twice {
				ps.add(child, "is there twice, first in line %d", first)
			}
			lines[child] = key.Line
			index(n.Content[i+1], child, lines, ps)
		}
	}
}

func decodeStruct(path string, raw []byte, into reflect.Value, ps *problems) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		ps.add(path, "%s: must be a mapping", raw)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		member, ok := fieldNamed(into, name)
		if !ok {
			ps.add(join(path, name), "no such field")
			continue
		}
		decodeValue(join(path, name), members[name], member, ps)
	}
}

func decodeValue(path string, raw []byte, into reflect.Value, ps *problems) {
	target := into.Addr().Interface()
	if _, own := target.(json.Unmarshaler); into.Kind() == reflect.Struct && !own {
		decodeStruct(path, raw, into, ps)
		return
	}
	unknown, err := kjson.UnmarshalStrict(raw, target)
	if err != nil {
		ps.add(path, "%s: must be %s", raw, allowed(target))
		return
	}
	for _, u := range unknown {
		ps.add(path, "%v", u)
	}
}

// fieldNamed returns the field of a struct, embedded ones included, that has
// the given name in JSON, case counting.
func fieldNamed(s reflect.Value, name string) (reflect.Value, bool) {
	for f, v := range s.Fields() {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name && name != "" {
			return v, true
		}
		if f.Anonymous && tag == "" {
			if inner, ok := fieldNamed(v, name); ok {
				return inner, true
			}
		}
	}
	return reflect.Value{}, false
}

// allowed says in words what a field of this type may hold.
func allowed(target any) string {
	switch target.(type) {
	case *metav1.Duration, **metav1.Duration, *logsapi.TimeOrMetaDuration:
		return `a duration such as "30s" or "1h15m"`
	case *string, *v1alpha1.ProxyMode, *v1alpha1.LocalMode:
		return "a string"
	case *bool, **bool:
		return "true or false"
	case *int32, **int32, *logsapi.VerbosityLevel:
		return "a whole number of 32 bits"
	case *float32:
		return "a number"
	case *[]string:
		return "a list of strings"
	case *map[string]bool:
		return "a mapping from names to true or false"
	}
	return "of type " + reflect.TypeOf(target).Elem().String()
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
