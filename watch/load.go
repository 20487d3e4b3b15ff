package watch

import (
	"errors"
	"io"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// Load reads the manifests of a directory once, as Directory does, and returns
// what is in them and all that is wrong with them.
func Load(dir string, o Options) (model.Snapshot, []Problem, error) {
	return model.Snapshot{}, nil, errors.ErrUnsupported
}

// Read is Load from one stream of YAML or JSON documents; name stands for it in
// problems.
func Read(name string, r io.Reader, o Options) (model.Snapshot, []Problem, error) {
	return model.Snapshot{}, nil, errors.ErrUnsupported
}

// FromObjects returns the snapshot that Services, EndpointSlices and Nodes as
// an API server serves them make, and all that is wrong with them. Nothing is
// defaulted or validated beyond what an API source does.
func FromObjects(o Options, objects ...runtime.Object) (model.Snapshot, []Problem) {
	return model.Snapshot{}, nil
}
