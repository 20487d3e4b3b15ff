package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
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
// As with kube-proxy, which decodes anew without looking at them, unknown
// fields, all but the last of repeated ones, and further documents are not
// read. lines holds the line of each field by its path. The error is for what
// is no YAML at all.
func decode(data []byte, fs *findings) (o v1alpha1.KubeProxyConfiguration, lines map[string]int, err error) {
	// Two readers: the first gives values the meaning that kube-proxy gives
	// them (YAML 1.1, merge keys), the second knows lines.
	raw, err := yaml.YAMLToJSON(data)
	if err != nil {
		return o, nil, err
	}
	if lines, err = index(data, fs); err != nil {
		return o, nil, err
	}
	if !checkKind(raw, fs) {
		return o, lines, nil
	}
	decodeStruct("", raw, reflect.ValueOf(&o).Elem(), fs)
	return o, lines, nil
}

// checkKind refuses another kind of object, of which nothing else is worth
// saying.
func checkKind(raw []byte, fs *findings) bool {
	var is metav1.TypeMeta
	// A value of a wrong type leaves its field empty, which is refused too.
	_ = json.Unmarshal(raw, &is)
	want := v1alpha1.SchemeGroupVersion.WithKind("KubeProxyConfiguration")
	if is.Kind != want.Kind {
		fs.refuse("kind", "%q: must be %s", is.Kind, want.Kind)
	}
	version := want.GroupVersion().String()
	if is.APIVersion != version {
		fs.refuse("apiVersion", "%q: must be %s", is.APIVersion, version)
	}
	return is.Kind == want.Kind && is.APIVersion == version
}

// second is the name in an index of the document after the first.
const second = "a second document"

// index returns the line of each field of the first document, and notes what
// is there twice.
func index(data []byte, fs *findings) (map[string]int, error) {
	var root, more yamlv3.Node
	if err := yamlv3.Unmarshal(data, &root); err != nil {
		return nil, err
	}
	lines := map[string]int{}
	indexNode(&root, "", lines, fs)
	documents := yamlv3.NewDecoder(bytes.NewReader(data))
	if documents.Decode(&root) == nil && documents.Decode(&more) == nil && len(more.Content) > 0 {
		lines[second] = more.Content[0].Line
		fs.note(second, "is not read")
	}
	return lines, nil
}

func indexNode(n *yamlv3.Node, path string, lines map[string]int, fs *findings) {
	switch n.Kind {
	case yamlv3.DocumentNode:
		indexNode(n.Content[0], path, lines, fs)
	case yamlv3.SequenceNode:
		for i, e := range n.Content {
			child := element(path, i)
			lines[child] = e.Line
			indexNode(e, child, lines, fs)
		}
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			child := join(path, key.Value)
			if first, twice := lines[child]; twice {
				fs.note(child, "is there twice: line %d is not read", first)
			}
			lines[child] = key.Line
			indexNode(n.Content[i+1], child, lines, fs)
		}
	}
}

func decodeStruct(path string, raw []byte, into reflect.Value, fs *findings) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		fs.refuse(path, "%s: must be a mapping", raw)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		member, ok := fieldNamed(into, name)
		if !ok {
			fs.note(join(path, name), "is not read: there is no such field")
			continue
		}
		decodeValue(join(path, name), members[name], member, fs)
	}
}

func decodeValue(path string, raw []byte, into reflect.Value, fs *findings) {
	target := into.Addr().Interface()
	_, own := target.(json.Unmarshaler)
	switch {
	case own:
	case into.Kind() == reflect.Struct:
		decodeStruct(path, raw, into, fs)
		return
	case into.Kind() == reflect.Map:
		decodeMap(path, raw, into, fs)
		return
	case into.Kind() == reflect.Slice && into.Type().Elem().Kind() == reflect.Struct:
		decodeList(path, raw, into, fs)
		return
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, target); err != nil {
		fs.refuse(path, "%s: must be %s", raw, allowed(target))
	}
}

// decodeList reads a list of mappings.
func decodeList(path string, raw []byte, into reflect.Value, fs *findings) {
	var elements []json.RawMessage
	if json.Unmarshal(raw, &elements) != nil {
		fs.refuse(path, "%s: must be a list", raw)
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(elements), len(elements)))
	for i, e := range elements {
		decodeStruct(element(path, i), e, into.Index(i), fs)
	}
}

// decodeMap reads a mapping of any names, without what is wrong in it.
func decodeMap(path string, raw []byte, into reflect.Value, fs *findings) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		fs.refuse(path, "%s: must be a mapping", raw)
		return
	}
	into.Set(reflect.MakeMapWithSize(into.Type(), len(members)))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		value, before := reflect.New(into.Type().Elem()).Elem(), len(fs.refused)
		decodeValue(join(path, name), members[name], value, fs)
		if len(fs.refused) == before {
			into.SetMapIndex(reflect.ValueOf(name), value)
		}
	}
}

// fieldNamed returns the field of a struct, embedded ones included, that has
// the given name in JSON, case counting.
func fieldNamed(s reflect.Value, name string) (reflect.Value, bool) {
	for f, v := range s.Fields() {
		tag := jsonName(f)
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

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
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
	case *int32, **int32:
		return "a whole number of 32 bits"
	case *logsapi.VerbosityLevel:
		return "a whole number from 0 to 2147483647"
	case *float32:
		return "a number"
	case *resource.QuantityValue:
		return "a number of bytes such as 512, 4Ki or 1M"
	case *[]string:
		return "a list of strings"
	}
	return "of type " + reflect.TypeOf(target).Elem().String()
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// element is the path of an element of a list.
func element(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
