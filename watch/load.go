package watch

import (
	"crypto/sha256"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// Load reads the manifests of a directory once, as Directory does, and returns
// what is in them and all that is wrong with them. The snapshot's Node has no
// Local addresses; the caller may set them. It logs nothing. The error is that
// the directory cannot be read.
func Load(dir string, o Options) (model.Snapshot, []Problem, error) {
	return load(o, func(d *directory) error {
		d.path = dir
		return d.scan()
	})
}

// Read is Load from one stream of documents. The name stands for it in
// problems; it is read as JSON if its name ends in ".json", else as YAML.
func Read(name string, r io.Reader, o Options) (model.Snapshot, []Problem, error) {
	return load(o, func(d *directory) error {
		data, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		var f file
		d.files[name] = f.become(name, sha256.Sum256(data), d.reader.read(name, data))
		d.publish()
		return nil
	})
}

func load(o Options, read func(*directory) error) (model.Snapshot, []Problem, error) {
	if err := o.Validate(); err != nil {
		return model.Snapshot{}, nil, err
	}
	o = silent(o)
	f, r := newFacts(o), newReporter(o)
	d, err := newDirectory("", o, f, r)
	if err == nil {
		err = read(d)
	}
	if err != nil {
		return model.Snapshot{}, nil, fmt.Errorf("watch: %w", err)
	}
	s, _ := f.snapshot()
	return s, r.all(), nil
}

// silent returns options whose problems are only returned.
func silent(o Options) Options {
	o.Logger, o.Observer = nil, nil
	return o.withDefaults()
}

// FromObjects returns the snapshot that Services, EndpointSlices and Nodes as
// an API server serves them make, and all that is wrong with them. Nothing is
// defaulted or validated beyond what an API source does. The node is the one
// named by Options.NodeName, or else the last one; of two objects of one name
// the last counts, too.
func FromObjects(o Options, objects ...runtime.Object) (model.Snapshot, []Problem) {
	o = silent(o)
	f, r := newFacts(o), newReporter(o)
	services, slices := serviceFeed(f, r), sliceFeed(f, r)
	nodes := nodeFeed(f, r, func(n model.Name, node *seenNode) {
		if o.NodeName == "" || n.Name == o.NodeName {
			f.setNode(*node)
		}
	}, nil)
	for _, obj := range objects {
		var err error
		switch obj := obj.(type) {
		case *corev1.Service:
			err = services.Add(obj)
		case *discoveryv1.EndpointSlice:
			err = slices.Add(obj)
		case *corev1.Node:
			err = nodes.Add(obj)
		default:
			err = fmt.Errorf("%T is none of Service, EndpointSlice, Node", obj)
		}
		if err != nil {
			r.set(object{kind: fmt.Sprintf("%T", obj)}, []Problem{{Message: err.Error()}})
		}
	}
	s, _ := f.snapshot()
	return s, r.all()
}
