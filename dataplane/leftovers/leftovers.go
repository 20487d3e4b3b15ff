package leftovers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nlproxy/nlproxy/dataplane/rules"
)

// Kernel is nf_tables; kernel.Conn is one, and says what the methods do.
type Kernel interface {
	Tables() ([]rules.Table, error)
	Apply(ops []rules.Op) (handles []uint64, err error)
}

// Options configures Find and Remove, which work in the network namespace of
// the calling thread.
type Options struct {
	// Kernel is nf_tables of that namespace. It is required.
	Kernel Kernel
}

// Validate names the first field that cannot be used.
func (o Options) Validate() error {
	if o.Kernel == nil {
		return errors.New("leftovers: Kernel is missing")
	}
	return nil
}

// Found is one thing that kube-proxy left.
type Found struct {
	// Kind is what it is, for instance "nftables table".
	Kind string
	// Name tells it from others of its kind, for instance "ip kube-proxy".
	Name string
	// Note is what else there is to know about it; mostly empty.
	Note string
	// Kept is why Remove could not remove it; else nil.
	Kept error
}

// String returns for instance "ipset KUBE-CLUSTER-IP (stays: rules of others
// refer to it)".
func (f Found) String() string {
	s := f.Kind + " " + f.Name
	if f.Note != "" {
		s += " (" + f.Note + ")"
	}
	if f.Kept != nil {
		s += fmt.Sprintf(" (stays: %v)", f.Kept)
	}
	return s
}

// look finds what one mode left, and returns what removes it, which sets Kept of
// what stays. That something is in use is no error. One that finds something in
// spite of an error has remove return that error as well.
type look func(Options) (found []Found, remove remover, err error)

// remover waits for nothing more once its context is done.
type remover func(ctx context.Context, found []Found) error

// steps stand for themselves: one that fails does not stop the others.
var steps = [...]struct {
	name string
	look look
}{
	{"nftables mode", lookForTables},
	{"iptables mode, legacy", lookForLegacy}, // before the sets that its rules may refer to
	{"ipvs mode", lookForIPVS},
}

// Find returns what Remove would remove. It changes nothing.
//
// The error joins those of the steps that failed, each with its name; what the
// others found is returned with it.
func Find(o Options) ([]Found, error) { return each(o, nil) }

// Remove removes what kube-proxy's other modes have left, and returns what that
// was, or is where Found.Kept says why. It can be repeated; what it finds again
// and again is being written by a kube-proxy that still runs.
//
// The error joins those of the steps that failed, each with its name; what the
// others removed is returned with it. When ctx is done, it waits no longer for
// programs that hold what it needs.
func Remove(ctx context.Context, o Options) ([]Found, error) {
	return each(o, func(remove remover, found []Found) error { return remove(ctx, found) })
}

// each looks for what each mode left, and does something about what there is;
// nil for nothing.
func each(o Options, do func(remover, []Found) error) (all []Found, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	var errs []error
	for _, s := range steps {
		found, remove, err := s.look(o)
		if do != nil && len(found) > 0 {
			err = do(remove, found) // of what could not be looked at, too
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("leftovers of kube-proxy's %s: %w", s.name, err))
		}
		all = append(all, found...)
	}
	return all, errors.Join(errs...)
}

// named is how many names of one kind Describe says.
const named = 20

// Describe says in one line what was found, of each kind at most 20 by name.
func Describe(found []Found) string {
	var parts []string
	for len(found) > 0 {
		kind := found[0].Kind
		end := slices.IndexFunc(found, func(f Found) bool { return f.Kind != kind })
		if end < 0 {
			end = len(found)
		}
		for _, f := range found[:min(end, named)] {
			parts = append(parts, f.String())
		}
		if end > named {
			parts = append(parts, fmt.Sprintf("%d more of these", end-named))
		}
		found = found[end:]
	}
	return strings.Join(parts, ", ")
}
