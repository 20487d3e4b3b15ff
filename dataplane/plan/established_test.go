package plan

import "testing"

func TestEstablished(t *testing.T) {
	const eps = "10.0.0.1:80 here ready,10.0.0.2:80 there ready,10.0.0.3:80 here dying,10.0.0.4:80 there dead,10.0.0.5:80 here"
	for name, tc := range map[string]struct {
		kind            FrontendKind
		iLocal, eLocal  bool
		outside, inside string
	}{
		"cluster IP":                        {ClusterIP, false, false, "10.0.0.1 10.0.0.2 10.0.0.3", "10.0.0.1 10.0.0.2 10.0.0.3"},
		"cluster IP, policy Local":          {ClusterIP, true, false, "10.0.0.1 10.0.0.3", "10.0.0.1 10.0.0.3"},
		"cluster IP, external policy Local": {ClusterIP, false, true, "10.0.0.1 10.0.0.2 10.0.0.3", "10.0.0.1 10.0.0.2 10.0.0.3"},
		"node port":                         {NodePort, false, false, "10.0.0.1 10.0.0.2 10.0.0.3", "10.0.0.1 10.0.0.2 10.0.0.3"},
		"node port, policy Local":           {NodePort, false, true, "10.0.0.1 10.0.0.3", "10.0.0.1 10.0.0.2 10.0.0.3"},
		"external IP, internal Local":       {ExternalIP, true, false, "10.0.0.1 10.0.0.2 10.0.0.3", "10.0.0.1 10.0.0.2 10.0.0.3"},
	} {
		svc := service("web", splitEndpoints(eps)...)
		svc.InternalLocal, svc.ExternalLocal = tc.iLocal, tc.eLocal
		outside, inside := one(t, Options{}, svc).Established(tc.kind)
		if pool(outside) != tc.outside || pool(inside) != tc.inside {
			t.Errorf("%s: %q and %q, want %q and %q", name, pool(outside), pool(inside), tc.outside, tc.inside)
		}
	}
}

func TestHintsDoNotMoveEstablishedFlows(t *testing.T) {
	svc := service("web", "10.0.0.1:80 here ready zone=z1", "10.0.0.2:80 there ready zone=z2")
	p := one(t, Options{}, svc)
	if outside, _ := p.Established(ClusterIP); pool(p.Cluster) != "10.0.0.1" || pool(outside) != "10.0.0.1 10.0.0.2" {
		t.Errorf("new flows go to %q, established ones may stay with %q", pool(p.Cluster), pool(outside))
	}
}

func TestExistingAreAllEndpoints(t *testing.T) {
	svc := service("web", "10.0.0.1:80 here ready", "10.0.0.2:80 there dead", "10.0.0.3:80 there", "[fd00::1]:80 here ready")
	if got := pool(one(t, Options{}, svc).Existing()); got != "10.0.0.1 10.0.0.2 10.0.0.3" {
		t.Errorf("existing are %q", got)
	}
}
