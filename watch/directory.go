package watch

import (
	"context"
	"errors"
)

// Directory returns a source that follows the manifests in a directory.
func Directory(dir string, o Options) (*Source, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	return newSource(o, func(context.Context) error { return errors.ErrUnsupported }), nil
}
