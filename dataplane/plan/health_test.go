package plan

import (
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

func TestHealthChecksCountReadyAddressesOnThisNode(t *testing.T) {
	https := model.PortKey{Port: "https", Protocol: model.TCP}
	for name, tc := range map[string]struct {
		eps, more string // of two ports
		want4     int
		want6     int
	}{
		"none":                       {},
		"one":                        {eps: "10.0.0.1:80 here ready", want4: 1},
		"elsewhere":                  {eps: "10.0.0.1:80 there ready"},
		"not ready":                  {eps: "10.0.0.1:80 here"},
		"terminating":                {eps: "10.0.0.1:80 here dying"},
		"terminating beside ready":   {eps: "10.0.0.1:80 here dying,10.0.0.2:80 here ready", want4: 1},
		"two ports of one address":   {eps: "10.0.0.1:80 here ready", more: "10.0.0.1:443 here ready", want4: 1},
		"ports on several addresses": {eps: "10.0.0.1:80 here ready,10.0.0.2:80 here ready", more: "10.0.0.3:443 here ready", want4: 3},
		"ready on one port only":     {eps: "10.0.0.1:80 here", more: "10.0.0.1:443 here ready", want4: 1},
		"each family by itself":      {eps: "10.0.0.1:80 here ready,[fd00::1]:80 here ready,[fd00::2]:80 here ready", want4: 1, want6: 2},
	} {
		svc := service("s")
		svc.ClusterIPs = addrs("10.96.0.1", "fd00:96::1")
		svc.Ports = append(svc.Ports, model.Port{PortKey: https, Number: 443})
		svc.ExternalLocal, svc.HealthCheckNodePort = true, 30999
		for key, eps := range map[model.PortKey]string{http: tc.eps, https: tc.more} {
			for ep := range strings.SplitSeq(eps, ",") {
				if ep != "" {
					svc.Endpoints[key] = append(svc.Endpoints[key], endpoint(ep))
				}
			}
		}
		for f, want := range map[model.Family]int{model.IPv4: tc.want4, model.IPv6: tc.want6} {
			got := New(f, Options{}).Build(snapshot(here, svc)).Services[svc.Name]
			if got.HealthCheck() != 30999 || got.ReadyHere != want {
				t.Errorf("%s: %v on port %d, %d ready here, want %d", name, f, got.HealthCheck(), got.ReadyHere, want)
			}
		}
	}
}

func TestNobodyAsksForWhatHasNoHealthCheck(t *testing.T) {
	with := func(set func(*model.Service)) *model.Service {
		svc := service("s", "10.0.0.1:80 here ready")
		svc.HealthCheckNodePort = 30999
		set(svc)
		return svc
	}
	for name, svc := range map[string]*model.Service{
		"no port for it":              with(func(s *model.Service) { s.HealthCheckNodePort = 0 }),
		"no cluster IP of the family": with(func(s *model.Service) { s.ClusterIPs = addrs("fd00:96::1") }),
		"no ports":                    with(func(s *model.Service) { s.Ports = nil }),
	} {
		if got := New(model.IPv4, Options{}).Build(snapshot(here, svc)).Services[svc.Name]; got.HealthCheck() != 0 || got.ReadyHere != 0 {
			t.Errorf("%s: port %d, %d ready here", name, got.HealthCheck(), got.ReadyHere)
		}
	}
}

func TestANodeThatIsRenamedCountsAnew(t *testing.T) {
	svc := service("s", "10.0.0.1:80 there ready")
	svc.HealthCheckNodePort = 30999
	p, s := New(model.IPv4, Options{}), snapshot(here, svc)
	p.Build(s)
	s.Changed = map[model.Name]struct{}{}
	s.Node.Name = "there"
	if got := p.Build(s).Services[svc.Name]; got.ReadyHere != 1 {
		t.Errorf("%d ready here, want 1", got.ReadyHere)
	}
}
