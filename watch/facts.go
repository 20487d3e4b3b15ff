package watch

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// facts is what a source knows, reduced, and the snapshot it handed out last.
type facts struct {
	needPodCIDRs bool
	changed      chan struct{}
	ready        chan struct{}

	mu       sync.Mutex
	waiting  map[string]struct{} // kinds of which no full list has arrived
	services map[model.Name]*model.Service
	slices   map[model.Name]*slice
	behind   map[model.Name][]*slice // by service, sorted by name
	node     model.Node
	host     bool // there is no Node object for node
	nodeErr  error
	nodeNews chan struct{} // closed, and made anew, when the node changes
	eligible atomic.Bool   // for new connections from outside, as far as the node's object says

	// dirty are the services that may differ from last, true if the Service
	// itself does and not only its slices.
	dirty    map[model.Name]bool
	last     *model.Snapshot
	started  time.Time
	seen     Changes
	triggers map[model.Name][]model.Trigger // of the changes since last, by service
}

// newFacts returns the facts of a source from which nothing has arrived yet,
// and which has to deliver a full list of each of kinds.
func newFacts(o Options, kinds ...string) *facts {
	waiting := map[string]struct{}{}
	for _, kind := range kinds {
		waiting[kind] = struct{}{}
	}
	f := &facts{
		needPodCIDRs: o.NeedPodCIDRs,
		changed:      make(chan struct{}, 1),
		ready:        make(chan struct{}),
		waiting:      waiting,
		services:     map[model.Name]*model.Service{},
		slices:       map[model.Name]*slice{},
		behind:       map[model.Name][]*slice{},
		node:         model.Node{Name: o.NodeName},
		nodeNews:     make(chan struct{}),
		dirty:        map[model.Name]bool{},
		started:      time.Now(),
		triggers:     map[model.Name][]model.Trigger{},
	}
	f.eligible.Store(true)
	return f
}

// arrived notes that a full list of kind is there.
func (f *facts) arrived(kind string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting) == 0 {
		return
	}
	delete(f.waiting, kind)
	if len(f.waiting) == 0 {
		close(f.ready)
		f.signal()
	}
}

// missing returns the kinds of which no full list has arrived, sorted.
func (f *facts) missing() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.waiting))
}

// signal tells the consumer that there may be a new snapshot.
func (f *facts) signal() {
	if len(f.waiting) > 0 {
		return
	}
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

func (f *facts) touch(n model.Name, service bool) {
	f.dirty[n] = f.dirty[n] || service
	f.signal()
}

// setService makes svc, without endpoints, the service named n; nil removes it.
func (f *facts) setService(n model.Name, svc *model.Service) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen.Services++
	f.putService(n, svc)
}

// replaceServices makes those of all the only services.
func (f *facts) replaceServices(all map[model.Name]*model.Service) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.putServices(all)
}

func (f *facts) putServices(all map[model.Name]*model.Service) {
	for n := range f.services {
		if all[n] == nil {
			f.seen.Services += f.putService(n, nil)
		}
	}
	for n, svc := range all {
		f.seen.Services += f.putService(n, svc)
	}
}

// replaceAll makes all and node everything there is, at once. Without a node,
// this one is the host named so.
func (f *facts) replaceAll(all contents, node *seenNode, host string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.putServices(all.services)
	f.putSlices(all.slices)
	if node != nil {
		f.putNode(*node)
	} else {
		f.putHost(host)
	}
}

// putService returns 1 if that is a change, else 0.
func (f *facts) putService(n model.Name, svc *model.Service) int {
	old := f.services[n]
	if old.Equal(svc) {
		return 0
	}
	if svc == nil {
		delete(f.services, n)
	} else {
		f.services[n] = svc
	}
	if !f.dirty[n] {
		f.seen.ServicesPending++
	}
	f.touch(n, true)
	return 1
}

// setSlice makes s the slice named n; nil removes it.
func (f *facts) setSlice(n model.Name, s *slice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s != nil || f.slices[n] != nil { // else it is of no matter
		f.seen.Endpoints++
	}
	f.putSlice(n, s)
}

// replaceSlices makes those of all the only slices.
func (f *facts) replaceSlices(all map[model.Name]*slice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.putSlices(all)
}

func (f *facts) putSlices(all map[model.Name]*slice) {
	for n := range f.slices {
		if all[n] == nil {
			f.seen.Endpoints += f.putSlice(n, nil)
		}
	}
	for n, s := range all {
		f.seen.Endpoints += f.putSlice(n, s)
	}
}

// putSlice returns 1 if that is a change, else 0.
func (f *facts) putSlice(n model.Name, s *slice) int {
	old := f.slices[n]
	if old.equal(s) {
		return 0
	}
	if old != nil {
		delete(f.slices, n)
		f.detach(old)
	}
	if s != nil {
		f.slices[n] = s
		f.attach(s)
	}
	f.seen.EndpointsPending++
	f.noteTrigger(old, s)
	return 1
}

func (f *facts) attach(s *slice) {
	behind := f.behind[s.service]
	i, _ := slices.BinarySearchFunc(behind, s.name, compareSliceName)
	f.behind[s.service] = slices.Insert(behind, i, s)
	f.touch(s.service, false)
}

func (f *facts) detach(s *slice) {
	behind := f.behind[s.service]
	if i, ok := slices.BinarySearchFunc(behind, s.name, compareSliceName); ok {
		behind = slices.Delete(behind, i, i+1)
	}
	if len(behind) == 0 {
		delete(f.behind, s.service)
	} else {
		f.behind[s.service] = behind
	}
	f.touch(s.service, false)
}

func compareSliceName(s *slice, n model.Name) int { return s.name.Compare(n) }

// snapshot returns everything as it is now.
func (f *facts) snapshot() (model.Snapshot, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting) > 0 {
		return model.Snapshot{}, false
	}
	next := model.Snapshot{Node: f.node, Triggers: slices.Concat(slices.Collect(maps.Values(f.triggers))...)}
	f.triggers = map[model.Name][]model.Trigger{}
	f.seen.ServicesPending, f.seen.EndpointsPending = 0, 0
	last := cmp.Or(f.last, &model.Snapshot{})
	changes := f.changes(last.Services)
	next.Services = last.Services.With(changes)
	if f.last != nil {
		next.Changed = make(map[model.Name]struct{}, len(changes))
		for n := range changes {
			next.Changed[n] = struct{}{}
		}
	}
	f.last = &next
	return next, true
}

// changes returns what differs from the services of last, nil for what is gone.
func (f *facts) changes(last model.Services) map[model.Name]*model.Service {
	changes := map[model.Name]*model.Service{}
	for n := range f.dirty {
		if now := f.service(n); !now.Equal(last.Get(n)) {
			changes[n] = now
		}
	}
	f.dirty = map[model.Name]bool{}
	return changes
}

// service returns the service named n with its endpoints, or nil.
func (f *facts) service(n model.Name) *model.Service {
	svc := f.services[n]
	if svc == nil {
		return nil
	}
	full := *svc
	full.Endpoints = merge(svc.Ports, f.behind[n])
	return &full
}
