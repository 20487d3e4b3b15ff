package traffic

import (
	"fmt"
	"math"
	"testing"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/xt"
	"github.com/nlproxy/nlproxy/integration/lab"
)

// TestConnectionsAreSpreadEvenly bounds Pearson's chi-square for three
// endpoints. With two degrees of freedom its distribution is P(X > x) =
// exp(-x/2), so that an even spread exceeds -2·ln(10⁻⁶) = 27.63 once in a
// million runs.
func TestConnectionsAreSpreadEvenly(t *testing.T) {
	t.Parallel()
	places := []string{"pod-1", "pod-2", "remote-1"}
	s := service{name: "spread", number: 1, endpoints: at(places...)}
	p := newProxy(t, settings())
	p.set(t, s)
	const connections = 3000
	tally := p.place(t, client).Spread("tcp", clusterIP(s, false), connections, lab.DialOptions{})
	if tally.Answered() != connections || len(tally.By) != len(places) {
		t.Fatalf("%s; want %d by each of %v", tally, connections, places)
	}
	const even = connections / 3.0
	chiSquare := 0.0
	for _, place := range places {
		chiSquare += math.Pow(float64(tally.By[place])-even, 2) / even
	}
	if limit := -2 * math.Log(1e-6); chiSquare > limit {
		t.Errorf("%s: chi-square %.2f exceeds %.2f", tally, chiSquare, limit)
	}
}

// TestSpreadOver500EndpointsIsEven computes the share of each endpoint from the
// probabilities that the kernel has, in units of 2⁻³¹.
func TestSpreadOver500EndpointsIsEven(t *testing.T) {
	t.Parallel()
	const endpoints = 500
	p := bareProxy(t, lab.Options{}, settings())
	p.set(t, service{name: "large", number: 1, endpoints: manyEndpoints(endpoints)})
	for _, f := range model.Families {
		chains := p.spreading(t, f, "default/large:tcp")
		chances := only[xt.StatisticInfo](t, chains...)
		if len(chances) != endpoints-1 {
			t.Fatalf("%s: %d rules with a chance, want %d", f, len(chances), endpoints-1)
		}
		left, worst := 1.0, 0.0
		for i := range endpoints {
			chance := 1.0
			if i < len(chances) {
				chance = float64(chances[i].Probability) / (1 << 31)
			}
			worst = max(worst, math.Abs(left*chance-1.0/endpoints))
			left *= 1 - chance
		}
		if worst >= 1e-6 {
			t.Errorf("%s: a share differs from 1/%d by %g", f, endpoints, worst)
		}
	}
}

// manyEndpoints are ready endpoints that do not exist.
func manyEndpoints(n int) []endpoint {
	var list []endpoint
	for i := range n {
		list = append(list, endpoint{place: fmt.Sprintf("absent-%d", i), conditions: ready})
	}
	return list
}
