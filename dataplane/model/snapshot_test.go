package model

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

func name(i int) Name { return Name{"default", fmt.Sprint("s", i)} }

// TestServicesBehaveLikeAMap changes a map and Services alike; older copies
// have to stay as they were.
func TestServicesBehaveLikeAMap(t *testing.T) {
	type version struct {
		services Services
		want     map[Name]*Service
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	versions := []version{{want: map[Name]*Service{}}}
	for range 50 {
		last := versions[len(versions)-1]
		next := version{want: maps.Clone(last.want)}
		changes := map[Name]*Service{}
		for range rnd.IntN(20) {
			n := name(rnd.IntN(300))
			changes[n] = nil
			delete(next.want, n)
			if rnd.IntN(3) > 0 {
				changes[n] = &Service{Name: n}
				next.want[n] = changes[n]
			}
		}
		next.services = last.services.With(changes)
		versions = append(versions, next)
	}
	for i, v := range versions {
		got := map[Name]*Service{}
		for svc := range v.services.All() {
			got[svc.Name] = svc
		}
		if !maps.Equal(got, v.want) || v.services.Len() != len(v.want) {
			t.Fatalf("version %d: %d services, Len %d, want %d", i, len(got), v.services.Len(), len(v.want))
		}
		for n := range 300 {
			if v.services.Get(name(n)) != v.want[name(n)] {
				t.Fatalf("version %d: %v is wrong", i, name(n))
			}
		}
	}
}

func TestAllStopsWhenTold(t *testing.T) {
	s := Services{}.With(map[Name]*Service{name(1): {}, name(2): {}})
	n := 0
	for range s.All() {
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d services after the first", n)
	}
}

func BenchmarkOneChangeAmong10000(b *testing.B) {
	all := map[Name]*Service{}
	for i := range 10_000 {
		all[name(i)] = &Service{Name: name(i)}
	}
	s := Services{}.With(all)
	one := map[Name]*Service{name(7): {Name: name(7)}}
	b.ReportAllocs()
	for b.Loop() {
		s = s.With(one)
	}
}
