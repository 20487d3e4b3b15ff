package legacy

import (
	"context"
	"errors"
	"fmt"

	"github.com/nlproxy/nlproxy/dataplane/rules"
)

// Removed is what of one table was removed, or is to be.
type Removed struct {
	// Table is one of x_tables: the names are those that nf_tables has too.
	Table rules.Table
	// Chains are gone, by name.
	Chains []string
	// Emptied are those that stay without rules, by name, since others' rules
	// jump to them.
	Emptied []string
	// Rules is how many are gone, from these chains and from chains of others.
	Rules int
	// Dropping are the base chains that have lost rules and whose policy is to
	// drop what no rule accepts. KUBE-FORWARD accepted packets of services
	// there, and rules of nf_tables cannot.
	Dropping []string
}

// Find returns what Remove would remove. It writes nothing and takes no lock.
// After an error it returns what it could find out.
func Find(o Options) ([]Removed, error) {
	return o.each(func(s socket, id rules.Table) (*Removed, error) {
		t, err := read(s, id)
		if err != nil {
			return nil, err
		}
		e := t.edit(id)
		if e.isEmpty() {
			return nil, nil
		}
		r := e.removed(id)
		return &r, nil
	})
}

// Remove removes all that a kube-proxy has left in x_tables, and returns it. It
// needs CAP_NET_ADMIN. It may be called again at any time; where there is
// nothing, nothing is written.
//
// After an error it returns what is gone all the same: a table that cannot be
// read or written does not keep others. When ctx is done it waits no longer for
// the lock; what has been begun is ended.
func Remove(ctx context.Context, o Options) ([]Removed, error) {
	found, err := Find(o)
	if len(found) == 0 {
		return nil, err
	}
	o = o.withDefaults()
	unlock, err := lock(ctx, o.Lock, o.Wait)
	if err != nil {
		return nil, fmt.Errorf("remove from legacy tables: %w", err)
	}
	removed, err := o.each(remove)
	return removed, errors.Join(err, unlock())
}

// each calls do for each table that there is, and returns what it returns.
func (o Options) each(do func(socket, rules.Table) (*Removed, error)) ([]Removed, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	ids, err := tables(o.Proc)
	errs := []error{err}
	var all []Removed
	for _, id := range ids {
		r, err := o.with(id, do)
		if err != nil {
			errs = append(errs, fmt.Errorf("legacy table %s: %w", id, err))
		}
		if r != nil {
			all = append(all, *r)
		}
	}
	return all, errors.Join(errs...)
}

func (o Options) with(id rules.Table, do func(socket, rules.Table) (*Removed, error)) (r *Removed, err error) {
	s, err := o.dial(id.Family)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return do(s, id)
}
