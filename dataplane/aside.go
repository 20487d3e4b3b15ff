package dataplane

import (
	"slices"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// asides are the services that the kernel refuses.
type asides struct {
	byName map[model.Name]*Aside
	retry  time.Duration
}

// add sets a service aside; the wait for the next try doubles each time.
func (a asides) add(name model.Name, err error) {
	now := time.Now()
	was, again := a.byName[name]
	if !again {
		a.byName[name] = &Aside{Service: name, Err: err, Since: now, Retry: now.Add(a.retry)}
		return
	}
	wait := min(2*now.Sub(was.Since)+a.retry, maxRetryFactor*a.retry)
	was.Err, was.Retry = err, now.Add(wait)
}

func (a asides) has(name model.Name) bool {
	_, ok := a.byName[name]
	return ok
}

// forgive takes a service back, because it has changed or was accepted.
func (a asides) forgive(name model.Name) { delete(a.byName, name) }

// due returns the services that are to be tried again now.
func (a asides) due() []model.Name {
	var names []model.Name
	for _, as := range a.list() {
		if !time.Now().Before(as.Retry) {
			names = append(names, as.Service)
		}
	}
	return names
}

// list returns all, by name.
func (a asides) list() []Aside {
	all := make([]Aside, 0, len(a.byName))
	for _, as := range a.byName {
		all = append(all, *as)
	}
	slices.SortFunc(all, func(x, y Aside) int { return x.Service.Compare(y.Service) })
	return all
}
