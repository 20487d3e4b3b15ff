package watch

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// manifest is one object of a file.
type manifest struct {
	// object is the zero value if not even the name could be read.
	object object
	line   int
	// value is a *model.Service, *slice or *seenNode, or nil for an object
	// of no matter.
	value any
	// refused says that an API server would not have taken the object.
	refused  bool
	problems []Problem
}

// head is what any object begins with.
type head struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

// manifestKind is a kind of object that files may hold.
type manifestKind struct {
	kind       string
	namespaced bool
	// read defaults, validates and reduces an object.
	read func(runtime.Object) (any, field.ErrorList, []Problem)
}

// manifestKinds lists them by what their manifests say.
func manifestKinds() map[metav1.TypeMeta]manifestKind {
	return map[metav1.TypeMeta]manifestKind{
		{APIVersion: "v1", Kind: "Service"}: {
			kindService, true, readObject(defaultService, validateService, reduceService)},
		{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}: {
			kindSlice, true, readObject(defaultSlice, validateSlice, reduceSlice)},
		{APIVersion: "v1", Kind: "Node"}: {
			kindNode, false, readObject(defaultNode, validateNode, reduceNode)},
	}
}

// lists are the kinds that may hold objects of ours, and what their items are
// that do not say it.
var lists = map[metav1.TypeMeta]metav1.TypeMeta{
	{APIVersion: "v1", Kind: "List"}:        {},
	{APIVersion: "v1", Kind: "ServiceList"}: {APIVersion: "v1", Kind: "Service"},
	{APIVersion: "v1", Kind: "NodeList"}:    {APIVersion: "v1", Kind: "Node"},
	{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSliceList"}: {
		APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice",
	},
}

func readObject[O *corev1.Service | *discoveryv1.EndpointSlice | *corev1.Node, V any](
	defaults func(O), validate func(O) field.ErrorList, reduce func(O) (*V, []Problem),
) func(runtime.Object) (any, field.ErrorList, []Problem) {
	return func(obj runtime.Object) (any, field.ErrorList, []Problem) {
		o, ok := obj.(O)
		if !ok {
			return nil, field.ErrorList{field.InternalError(nil, fmt.Errorf("decoded as %T", obj))}, nil
		}
		defaults(o)
		if errs := validate(o); len(errs) > 0 {
			return nil, errs, nil
		}
		value, problems := reduce(o)
		if value == nil {
			return nil, nil, problems
		}
		return value, nil, problems
	}
}

// manifestReader turns files into manifests.
type manifestReader struct {
	kinds   map[metav1.TypeMeta]manifestKind
	decoder runtime.Decoder
}

func newManifestReader() (*manifestReader, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	strict := serializer.SerializerOptions{Strict: true}
	return &manifestReader{
		kinds:   manifestKinds(),
		decoder: serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, scheme, scheme, strict),
	}, nil
}

// read returns the objects in a file, in their order. Kinds that are of no
// matter are left out.
func (r *manifestReader) read(name string, data []byte) []manifest {
	split := readYAML
	if path.Ext(name) == ".json" {
		split = readJSON
	}
	var all []manifest
	for _, d := range split(data) {
		if d.err != nil {
			all = append(all, unreadable(name, d.line, d.err))
			continue
		}
		all = append(all, r.expand(name, d.line, d.data, metav1.TypeMeta{})...)
	}
	return all
}

// unreadable returns a manifest that could not be told from others.
func unreadable(file string, line int, err error) manifest {
	return manifest{line: line, refused: true, problems: []Problem{{File: file, Line: line, Message: err.Error()}}}
}

// expand reads one object, or those of a list; presumed is what an object is
// that does not say so.
func (r *manifestReader) expand(file string, line int, data []byte, presumed metav1.TypeMeta) []manifest {
	var h head
	if err := utiljson.Unmarshal(data, &h); err != nil {
		return []manifest{unreadable(file, line, err)}
	}
	if h.TypeMeta == (metav1.TypeMeta{}) {
		h.TypeMeta = presumed
	}
	if h.Kind == "" || h.APIVersion == "" {
		return []manifest{unreadable(file, line, errors.New("no object: it has no apiVersion or no kind"))}
	}
	if items, ok := lists[h.TypeMeta]; ok {
		var all []manifest
		for _, item := range h.Items {
			all = append(all, r.expand(file, line, item, items)...)
		}
		return all
	}
	kind, ok := r.kinds[h.TypeMeta]
	if !ok {
		return r.otherKind(file, line, h)
	}
	return []manifest{r.object(file, line, kind, h, data)}
}

// otherKind reports a kind of ours in another version; no other kind matters.
func (r *manifestReader) otherKind(file string, line int, h head) []manifest {
	for ours := range r.kinds {
		if ours.Kind == h.Kind && path.Dir(ours.APIVersion) == path.Dir(h.APIVersion) {
			return []manifest{unreadable(file, line, fmt.Errorf("%s %s: apiVersion %q is not known, only %q",
				h.Kind, h.Metadata.Name, h.APIVersion, ours.APIVersion))}
		}
	}
	return nil
}

// object reads one object of a kind of ours.
func (r *manifestReader) object(file string, line int, kind manifestKind, h head, data []byte) manifest {
	f := findings{object: object{kind.kind, model.Name{Name: h.Metadata.Name}}}
	if kind.namespaced {
		f.object.name.Namespace = orDefault(h.Metadata.Namespace)
	}
	m := manifest{object: f.object, line: line}
	gvk := h.GroupVersionKind()
	obj, _, err := r.decoder.Decode(data, &gvk, nil)
	if err != nil {
		m.refused = true
		for _, e := range decodingErrors(err) {
			f.add("", "%v", e)
		}
	} else {
		value, errs, problems := kind.read(obj)
		m.value, m.refused, f.list = value, len(errs) > 0, problems
		for _, e := range errs {
			f.add(e.Field, "%s", e.ErrorBody())
		}
	}
	for i := range f.list {
		f.list[i].File, f.list[i].Line = file, line
	}
	m.problems = f.list
	return m
}

func decodingErrors(err error) []error {
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		return strict.Errors()
	}
	return []error{err}
}

func orDefault(namespace string) string {
	if namespace == "" {
		return metav1.NamespaceDefault
	}
	return namespace
}
