package watch

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// feed is the store into which a reflector puts the objects of one kind, each
// an O. It reduces them to V and passes that on; of the objects it keeps
// nothing.
type feed[O metav1.Object, V any] struct {
	kind   string
	reduce func(O) (*V, []Problem)
	report *reporter
	facts  *facts

	// awaited is the object whose problems outlive it: that it is not there is
	// one. The zero value is none.
	awaited model.Name

	// set and replace pass on one object, nil if it is gone, and all.
	set     func(model.Name, *V)
	replace func(map[model.Name]*V)
}

// reduced is what is left of an object. A nil value stands for one that is of
// no matter.
type reduced[V any] struct {
	name     model.Name
	value    *V
	problems []Problem
}

// GetObjectMeta lets a reflector find the name of what it collects for a
// streamed list.
func (r *reduced[V]) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: r.name.Namespace, Name: r.name.Name}
}

var _ cache.TransformingStore = (*feed[*metav1.ObjectMeta, struct{}])(nil)

// Transformer reduces the objects of a streamed list as they arrive, so that a
// full list is never in memory.
func (f *feed[O, V]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return f.take(obj) }
}

// take reduces an object, if that has not been done yet.
func (f *feed[O, V]) take(obj any) (*reduced[V], error) {
	if r, ok := obj.(*reduced[V]); ok {
		return r, nil
	}
	o, ok := obj.(O)
	if !ok {
		return nil, fmt.Errorf("%T is no %s", obj, f.kind)
	}
	value, problems := f.reduce(o)
	name := model.Name{Namespace: o.GetNamespace(), Name: o.GetName()}
	return &reduced[V]{name, value, problems}, nil
}

// Add takes an object that is new.
func (f *feed[O, V]) Add(obj any) error {
	r, err := f.take(obj)
	if err != nil {
		return err
	}
	f.report.set(object{f.kind, r.name}, r.problems)
	f.set(r.name, r.value)
	return nil
}

// Update takes an object that has changed.
func (f *feed[O, V]) Update(obj any) error { return f.Add(obj) }

// Delete takes an object that is gone, as it last was.
func (f *feed[O, V]) Delete(obj any) error {
	o, ok := obj.(O)
	if !ok {
		return fmt.Errorf("%T is no %s", obj, f.kind)
	}
	name := model.Name{Namespace: o.GetNamespace(), Name: o.GetName()}
	f.report.set(object{f.kind, name}, nil)
	f.set(name, nil)
	return nil
}

// Replace takes all objects there are.
func (f *feed[O, V]) Replace(list []any, _ string) error {
	all := make(map[model.Name]*V, len(list))
	for i, obj := range list {
		r, err := f.take(obj)
		if err != nil {
			return err
		}
		list[i] = nil
		f.report.set(object{f.kind, r.name}, r.problems)
		all[r.name] = r.value
	}
	f.report.retain(f.kind, func(n model.Name) bool { _, ok := all[n]; return ok || n == f.awaited })
	f.replace(all)
	f.facts.arrived(f.kind)
	return nil
}

// Resync does nothing: nothing that was passed on is lost.
func (f *feed[O, V]) Resync() error { return nil }

func serviceFeed(f *facts, r *reporter) *feed[*corev1.Service, model.Service] {
	return &feed[*corev1.Service, model.Service]{
		kind: kindService, reduce: reduceService, report: r, facts: f,
		set: f.setService, replace: f.replaceServices,
	}
}

func sliceFeed(f *facts, r *reporter) *feed[*discoveryv1.EndpointSlice, slice] {
	return &feed[*discoveryv1.EndpointSlice, slice]{
		kind: kindSlice, reduce: reduceSlice, report: r, facts: f,
		set: f.setSlice, replace: f.replaceSlices,
	}
}

// nodeFeed is of the nodes that set and replace let pass.
func nodeFeed(f *facts, r *reporter, set func(model.Name, *seenNode), replace func(map[model.Name]*seenNode)) *feed[*corev1.Node, seenNode] {
	return &feed[*corev1.Node, seenNode]{
		kind: kindNode, reduce: f.reduceNode, report: r, facts: f,
		set: set, replace: replace,
	}
}
