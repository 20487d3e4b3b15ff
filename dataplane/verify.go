package dataplane

import (
	"fmt"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"go.uber.org/zap"
)

// look lists the kernel's rules if they are not known.
func (d *Dataplane) look(report *Report) error {
	if d.state != nil {
		return nil
	}
	report.Full = true
	err := d.list()
	report.failed(err)
	return err
}

func (d *Dataplane) list() error {
	generation, err := d.opts.Reader.Generation()
	if err != nil {
		return fmt.Errorf("list rules: %w", err)
	}
	chains, err := d.opts.Reader.List(iptables.Tables())
	if err != nil {
		return fmt.Errorf("list rules: %w", err)
	}
	d.generation, d.touched, d.listed = generation, false, time.Now()
	d.state = rules.NewState(chains, iptables.Leftover)
	d.state.Keep(d.stuck)
	d.warnOfUnhooked(chains)
	return nil
}

func (d *Dataplane) warnOfUnhooked(chains []rules.ListedChain) {
	for _, c := range chains {
		if iptables.Unhooked(c) {
			d.opts.Logger.Warn("a chain of others is not the base chain that its name says: services do not work "+
				"until it is deleted", zap.Stringer("chain", c.ID))
		}
	}
}

// verify looks whether everything still passes through our chains if somebody
// else has changed the ruleset since our last transaction: a firewall that was
// reloaded may have taken our rules with it. What else may have been changed is
// found out by comparing everything, which takes longer, now and then; then a
// family that the kernel refused is tried again, too.
func (d *Dataplane) verify() {
	if d.state == nil {
		return
	}
	generation, err := d.opts.Reader.Generation()
	if err != nil {
		return
	}
	if generation != d.generation {
		d.generation, d.touched = generation, true
		d.verifySentinels()
	}
	if (d.touched || len(d.missing) > 0) && time.Since(d.listed) >= d.opts.Recheck {
		d.state = nil
		clear(d.missing)
	}
}

func (d *Dataplane) verifySentinels() {
	for _, id := range d.state.Sentinels() {
		listed, err := d.opts.Reader.ListChain(id)
		if err == nil {
			err = d.state.Verify(listed)
		}
		if err != nil {
			d.intruder.noticed(zap.Stringer("chain", id), zap.Error(err))
			d.state = nil
			return
		}
	}
}
