package dataplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// attempts is how often rules are listed and compared anew in one Set because
// somebody else changes them meanwhile.
const attempts = 3

// program makes the kernel agree with the plans of s. Each time that the kernel
// refuses something, that is set aside and the rest written again.
func (d *Dataplane) program(ctx context.Context, s model.Snapshot, report *Report) error {
	for drifts := 0; ; {
		if err := d.look(report); err != nil {
			return err
		}
		plans := d.plan(s, report)
		d.oweAll(plans)
		err := d.write(ctx, plans, report.Full, d.aside.has, report)
		var no *kernel.Refused
		switch {
		case err == nil && report.Full && drifts == 0 && d.overtaken():
			// Somebody wrote after we had listed; the same rules perhaps.
			drifts++
			d.state = nil
		case err == nil:
			d.committed(plans, s.Node, d.aside.has)
			return nil
		case drifted(err) && drifts < attempts:
			drifts++
			d.intruder.noticed(zap.Error(err))
		case drifted(err) && d.overtaken():
			return fmt.Errorf("write rules while somebody else keeps changing them: %w", err)
		case errors.As(err, &no):
			if err := d.setAside(no, s.Node.Primary()); err != nil {
				return err
			}
		default:
			return fmt.Errorf("write rules: %w", err)
		}
	}
}

// committed tells what has been written: plans, without the services that skip
// names and the families that the kernel lacks.
func (d *Dataplane) committed(plans []plan.Plan, node model.Node, skip func(model.Name) bool) {
	var written []plan.Plan
	for _, p := range plans {
		if d.missing[p.Family] != nil {
			continue
		}
		planned := len(p.Services)
		maps.DeleteFunc(p.Services, func(n model.Name, _ plan.Service) bool { return skip(n) })
		if p.All && len(p.Services) < planned { // what is set aside is not gone
			p.All = false
			d.nameGone(p, skip)
		}
		written = append(written, p)
		d.noLocal.update(p)
	}
	if d.opts.Committed != nil {
		d.opts.Committed(written, node)
	}
}

// nameGone adds to a plan of everything what is owed and not in it: it is gone,
// and the plan that said so may have failed.
func (d *Dataplane) nameGone(p plan.Plan, skip func(model.Name) bool) {
	for name := range d.owed {
		if _, planned := p.Services[name]; !planned && !skip(name) {
			p.Services[name] = plan.Service{Name: name}
		}
	}
}

// write commits the difference between plans and the kernel, the services that
// skip names left out. With full, plans are all that there is to be. After an
// error the state is forgotten, unless it is certain that nothing was changed.
func (d *Dataplane) write(ctx context.Context, plans []plan.Plan, full bool, skip func(model.Name) bool, report *Report) error {
	state := d.state
	before := state.Written()
	round := state.Round(full, d.opts.Reader.ListChain)
	send := newSender(ctx, d.opts, state, report)
	for _, p := range plans {
		if d.missing[p.Family] != nil {
			continue
		}
		for part := range iptables.Encode(p) {
			if !skip(nameOf(part.Owner)) {
				send.add(round.Add(part))
			}
		}
	}
	send.add(round.Finish())
	err := send.flush()
	d.generation += uint32(send.committed)
	if err == nil {
		err = round.Err()
	}
	for table, n := range state.Written() {
		report.Written[table] += n - before[table]
	}
	err = d.settle(err, full || send.committed > 0)
	report.failed(err)
	return err
}

// settle forgets what a failed write left uncertain. Chains that could not be
// deleted, since somebody else's rules jump to them, are left to them, empty.
func (d *Dataplane) settle(err error, touched bool) error {
	var no *kernel.Refused
	refused := errors.As(err, &no)
	if err != nil && (touched || !refused || no.Rest || drifted(err)) {
		d.state = nil
	}
	if !refused || !no.Rest {
		return err
	}
	for _, o := range no.Objects {
		d.stuck[o.Place.Chain] = struct{}{}
	}
	d.opts.Logger.Warn("chains are not needed any more but in use by others", zap.Error(no))
	return nil
}

// drifted reports whether a write failed because the kernel did not hold what
// it was believed to hold: what a write refers to either is in State or is made
// by it.
func drifted(err error) bool {
	var no *kernel.Refused
	if !errors.As(err, &no) {
		return errors.Is(err, rules.ErrDrift) || errors.Is(err, fs.ErrNotExist)
	}
	for _, o := range no.Objects {
		if o.Errno == unix.ENOENT && o.Feature == "" {
			return true
		}
	}
	return false
}

// overtaken reports whether somebody else may have changed the ruleset since it
// was listed.
func (d *Dataplane) overtaken() bool {
	generation, err := d.opts.Reader.Generation()
	return err != nil || generation != d.generation
}

// setAside notes which family or services the kernel refuses. What no service
// owns in the primary family cannot be done without, and is an error; but
// chains in use can wait until nothing else is in the way.
func (d *Dataplane) setAside(no *kernel.Refused, primary model.Family) error {
	objects := slices.DeleteFunc(slices.Clone(no.Objects), inUse)
	if len(objects) == 0 {
		objects = no.Objects
	}
	for _, o := range objects {
		f := o.Place.Chain.Table.Family
		switch {
		case o.Place.Owner != rules.Frame || d.missing[f] != nil:
		case f == primary:
			return fmt.Errorf("write rules: %w", no)
		default:
			d.missing[f] = no
			d.opts.Logger.Warn("this kernel does not serve a family",
				zap.Stringer("family", f), zap.Stringer("object", o))
		}
	}
	for _, o := range objects {
		service := nameOf(o.Place.Owner)
		if d.missing[o.Place.Chain.Table.Family] != nil || d.aside.has(service) {
			continue // of a service, its first object says why
		}
		d.opts.Logger.Error("the kernel refuses a service, which is set aside", zap.Stringer("object", o))
		d.aside.add(service, errors.New(o.String()))
	}
	return nil
}

// inUse reports whether a chain was not deleted because rules jump to it.
func inUse(o kernel.Refusal) bool { return o.Verb == rules.DeleteChain && o.Errno == unix.EBUSY }

func nameOf(owner string) model.Name {
	namespace, name, _ := strings.Cut(owner, "/")
	return model.Name{Namespace: namespace, Name: name}
}

// retryAside tries each service whose time has come, alone, so that a refusal
// costs nobody else.
func (d *Dataplane) retryAside(ctx context.Context, s model.Snapshot, report *Report) {
	for _, name := range d.aside.due() {
		if d.state == nil || ctx.Err() != nil {
			return
		}
		others := func(n model.Name) bool { return n != name && d.aside.has(n) }
		s.Changed = map[model.Name]struct{}{name: {}}
		plans := d.plan(s, report)
		if err := d.write(ctx, plans, false, others, report); err != nil {
			d.aside.add(name, err)
			continue
		}
		d.aside.forgive(name)
		d.committed(plans, s.Node, others)
		d.opts.Logger.Info("the kernel takes a service that was set aside", zap.Stringer("service", name))
	}
}
