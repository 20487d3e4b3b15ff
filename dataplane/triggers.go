package dataplane

import (
	"slices"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// heldTriggers is how many triggers are kept at most, the newest, of what could
// not be made true: a kernel may refuse everything for days.
const heldTriggers = 10_000

// await adds the triggers of s to those of changes that the kernel does not
// agree with yet. Nobody waits for a service that is gone.
func (d *Dataplane) await(s model.Snapshot) {
	d.triggers = d.triggers[max(0, len(d.triggers)-heldTriggers):]
	d.triggers = slices.DeleteFunc(d.triggers, func(t model.Trigger) bool {
		_, changed := s.Changed[t.Service]
		return changed && s.Services.Get(t.Service) == nil
	})
	d.triggers = append(d.triggers, s.Triggers...)
}

// takeTriggers returns the triggers of what the kernel agrees with now. Those
// of services that it refuses stay.
func (d *Dataplane) takeTriggers() []model.Trigger {
	refused := func(t model.Trigger) bool { return d.aside.has(t.Service) }
	if !slices.ContainsFunc(d.triggers, refused) {
		done := d.triggers
		d.triggers = nil
		return done
	}
	done := slices.DeleteFunc(slices.Clone(d.triggers), refused)
	d.triggers = slices.DeleteFunc(d.triggers, func(t model.Trigger) bool { return !refused(t) })
	return done
}
