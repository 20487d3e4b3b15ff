package model

import (
	"hash/maphash"
	"iter"
	"maps"
	"time"
)

// Snapshot is everything that existed at one moment, and what of it is new.
type Snapshot struct {
	Node     Node
	Services Services

	// Changed names the services that differ from the Snapshot before this
	// one from the same source, also those that are gone. It is nil on the
	// first Snapshot and means every service there.
	Changed map[Name]struct{}

	// Triggers are when the changes of endpoints since the Snapshot before this
	// one were asked for, as far as that is known, one for each change.
	Triggers []Trigger
}

// Trigger is when something happened, such as the start of a pod, that changed
// the endpoints of a service in one family.
type Trigger struct {
	Service Name
	Family  Family
	At      time.Time
}

// Services is an immutable map of services by name. The zero value is empty.
// A changed copy shares all that did not change with the original, so that its
// cost follows the change and not the size of the cluster.
type Services struct {
	shards *[shardCount]map[Name]*Service
	size   int
}

// shardCount balances the cost of copying one shard against that of copying
// the array of them: at 10,000 services a change copies 40 entries and 2 KB.
const shardCount = 256

var shardSeed = maphash.MakeSeed()

func shardOf(n Name) int {
	return int(maphash.Comparable(shardSeed, n) % shardCount)
}

// Len returns the number of services.
func (s Services) Len() int { return s.size }

// Get returns the service of that name, or nil.
func (s Services) Get(n Name) *Service {
	if s.shards == nil {
		return nil
	}
	return s.shards[shardOf(n)][n]
}

// All yields every service in no particular order.
func (s Services) All() iter.Seq[*Service] {
	return func(yield func(*Service) bool) {
		if s.shards == nil {
			return
		}
		for _, shard := range s.shards {
			for _, svc := range shard {
				if !yield(svc) {
					return
				}
			}
		}
	}
}

// With returns a copy of s in which each name of changes has the given value;
// a nil value removes it.
func (s Services) With(changes map[Name]*Service) Services {
	next := Services{shards: new([shardCount]map[Name]*Service), size: s.size}
	if s.shards != nil {
		*next.shards = *s.shards
	}
	var own [shardCount]bool
	for n, svc := range changes {
		i := shardOf(n)
		if !own[i] {
			next.shards[i] = cloned(next.shards[i])
			own[i] = true
		}
		next.set(i, n, svc)
	}
	return next
}

func (s *Services) set(i int, n Name, svc *Service) {
	_, had := s.shards[i][n]
	switch {
	case svc != nil:
		s.shards[i][n] = svc
		if !had {
			s.size++
		}
	case had:
		delete(s.shards[i], n)
		s.size--
	}
}

func cloned(m map[Name]*Service) map[Name]*Service {
	if m == nil {
		return map[Name]*Service{}
	}
	return maps.Clone(m)
}
