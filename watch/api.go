package watch

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"
)

// API returns a source that follows an API server. It does not connect before
// Run.
func API(config *rest.Config, o Options) (*Source, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	return newSource(o, func(context.Context) error { return errors.ErrUnsupported }), nil
}
