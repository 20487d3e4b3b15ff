package dataplane

import (
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
)

// noLocal are the services that have ports whose traffic is dropped, since
// policy wants endpoints on this node and all are on others. It is kept from
// plan to plan, so that its cost follows the change.
type noLocal map[model.Family]*dropped

type dropped struct {
	byName map[model.Name]NoLocal // none that is zero
	total  NoLocal
}

// update takes over what has been written.
func (n noLocal) update(p plan.Plan) {
	d := n[p.Family]
	if d == nil || p.All {
		d = &dropped{byName: map[model.Name]NoLocal{}}
		n[p.Family] = d
	}
	for name, svc := range p.Services {
		d.set(name, drops(svc))
	}
}

func (d *dropped) set(name model.Name, now NoLocal) {
	before := d.byName[name]
	d.total.Internal += now.Internal - before.Internal
	d.total.External += now.External - before.External
	if now == (NoLocal{}) {
		delete(d.byName, name)
	} else {
		d.byName[name] = now
	}
}

func drops(svc plan.Service) (n NoLocal) {
	for _, p := range svc.Ports {
		if p.Internal == plan.Drop {
			n.Internal++
		}
		if p.External == plan.Drop {
			n.External++
		}
	}
	return n
}

// count returns the totals.
func (n noLocal) count() map[model.Family]NoLocal {
	all := make(map[model.Family]NoLocal, len(n))
	for f, d := range n {
		all[f] = d.total
	}
	return all
}
