package watch

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"sync"

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
	nodeErr  error
	nodeNews chan struct{} // closed, and made anew, when the node changes

	dirty map[model.Name]struct{}
	last  *model.Snapshot
}

// newFacts returns the facts of a source of which nothing has arrived yet.
func newFacts(o Options) *facts {
	return &facts{
		needPodCIDRs: o.NeedPodCIDRs,
		changed:      make(chan struct{}, 1),
		ready:        make(chan struct{}),
		waiting:      map[string]struct{}{kindService: {}, kindSlice: {}},
		services:     map[model.Name]*model.Service{},
		slices:       map[model.Name]*slice{},
		behind:       map[model.Name][]*slice{},
		node:         model.Node{Name: o.NodeName},
		nodeNews:     make(chan struct{}),
		dirty:        map[model.Name]struct{}{},
	}
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

func (f *facts) touch(n model.Name) {
	f.dirty[n] = struct{}{}
	f.signal()
}

// setService makes svc, without endpoints, the service named n; nil removes it.
func (f *facts) setService(n model.Name, svc *model.Service) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.putService(n, svc)
}

// replaceServices makes those of all the only services.
func (f *facts) replaceServices(all map[model.Name]*model.Service) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := range f.services {
		if all[n] == nil {
			f.putService(n, nil)
		}
	}
	for n, svc := range all {
		f.putService(n, svc)
	}
}

func (f *facts) putService(n model.Name, svc *model.Service) {
	old := f.services[n]
	if old.Equal(svc) {
		return
	}
	if svc == nil {
		delete(f.services, n)
	} else {
		f.services[n] = svc
	}
	f.touch(n)
}

// setSlice makes s the slice named n; nil removes it.
func (f *facts) setSlice(n model.Name, s *slice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.putSlice(n, s)
}

// replaceSlices makes those of all the only slices.
func (f *facts) replaceSlices(all map[model.Name]*slice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := range f.slices {
		if all[n] == nil {
			f.putSlice(n, nil)
		}
	}
	for n, s := range all {
		f.putSlice(n, s)
	}
}

func (f *facts) putSlice(n model.Name, s *slice) {
	old := f.slices[n]
	if old.equal(s) {
		return
	}
	if old != nil {
		delete(f.slices, n)
		f.detach(old)
	}
	if s != nil {
		f.slices[n] = s
		f.attach(s)
	}
}

func (f *facts) attach(s *slice) {
	behind := f.behind[s.service]
	i, _ := slices.BinarySearchFunc(behind, s.name, compareSliceName)
	f.behind[s.service] = slices.Insert(behind, i, s)
	f.touch(s.service)
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
	f.touch(s.service)
}

func compareSliceName(s *slice, n model.Name) int { return s.name.Compare(n) }

// setNode makes n what is known of this node, its local addresses aside.
func (f *facts) setNode(n model.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n.Local = f.node.Local
	f.nodeErr = f.incomplete(n)
	f.putNode(n)
}

// loseNode keeps the node as it is, and err as the reason why it may be wrong.
func (f *facts) loseNode(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodeErr = err
}

func (f *facts) setLocal(addrs []netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.node
	n.Local = addrs
	f.putNode(n)
}

func (f *facts) putNode(n model.Node) {
	close(f.nodeNews)
	f.nodeNews = make(chan struct{})
	if f.node.Equal(n) {
		return
	}
	f.node = n
	f.signal()
}

func (f *facts) incomplete(n model.Node) error {
	switch {
	case len(n.Addresses) == 0:
		return fmt.Errorf("%w: node %s has no address", ErrNoNode, n.Name)
	case f.needPodCIDRs && len(n.PodCIDRs) == 0:
		return fmt.Errorf("%w: node %s has no pod CIDR", ErrNoNode, n.Name)
	}
	return nil
}

// nodeState returns why this node is not known, and a channel that is closed
// when that may have changed.
func (f *facts) nodeState() (error, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nodeErr, f.nodeNews
}

// snapshot returns everything as it is now.
func (f *facts) snapshot() (model.Snapshot, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting) > 0 {
		return model.Snapshot{}, false
	}
	next := model.Snapshot{Node: f.node}
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
	f.dirty = map[model.Name]struct{}{}
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
