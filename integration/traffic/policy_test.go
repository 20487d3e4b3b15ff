package traffic

import "testing"

func TestTerminatingEndpointsAreTheLastResort(t *testing.T) {
	t.Parallel()
	p := newProxy(t, settings())
	wide := service{name: "wide", number: 1}
	local := service{name: "local", number: 2, kind: "NodePort", spec: "externalTrafficPolicy: Local"}
	leaving := all(terminating, "pod-1")
	for _, step := range []struct {
		name      string
		endpoints []endpoint
		// from a pod at the cluster IP of wide, and from outside at the node port of local
		wide, local want
	}{
		{"ready ones are left", append(leaving, at("pod-2", "remote-1")...),
			kept("pod-2", "remote-1"), kept("pod-2")},
		{"ready ones are left elsewhere", append(leaving, at("remote-1")...),
			kept("remote-1"), kept("pod-1")},
		{"none is left", append(leaving, all(terminating, "remote-1")...),
			kept("pod-1", "remote-1"), kept("pod-1")},
		{"they serve no longer", all(gone, "pod-1", "remote-1"), refused(), refused()},
		{"they serve no longer here", append(all(gone, "pod-1"), at("remote-1")...),
			kept("remote-1"), dropped()},
	} {
		t.Run(step.name, func(t *testing.T) {
			wide, local := wide.with(step.endpoints...), local.with(step.endpoints...)
			p.set(t, wide, local)
			p.check(t, append(
				fromAll([]string{client}, wide, step.wide, clusterIP),
				fromAll([]string{"outside"}, local, step.local, nodePort)...))
		})
	}
}

func TestInternalPolicyLocal(t *testing.T) {
	t.Parallel()
	spec := "internalTrafficPolicy: Local"
	here := service{name: "here", number: 1, kind: "NodePort", spec: spec, endpoints: at("pod-1", "remote-1")}
	away := service{name: "away", number: 2, kind: "NodePort", spec: spec, endpoints: at("remote-1")}
	p := newProxy(t, settings())
	p.set(t, here, away)
	rows := []row{
		{from: client, to: here, by: clusterIP, want: kept("pod-1")},
		{from: "node", to: here, by: clusterIP, want: masqueraded("pod-1")},
		{from: "outside", to: here, by: clusterIP, want: masqueraded("pod-1")},
		{from: "outside", to: here, by: nodePort, want: masqueraded("pod-1", "remote-1")},
		{from: "outside", to: away, by: nodePort, want: masqueraded("remote-1")},
	}
	p.check(t, append(rows, fromAll(everybody(), away, dropped(), clusterIP)...))
}

func TestHints(t *testing.T) {
	t.Parallel()
	hinted := func(place, hints string) endpoint { return endpoint{place, ready, hints} }
	zone := func(place, zone string) endpoint { return hinted(place, "forZones: [{name: "+zone+"}]") }
	p := newProxy(t, settings())
	for number, c := range []struct {
		name      string
		endpoints []endpoint
		want      want
	}{
		{"zone", []endpoint{zone("pod-1", "zone-a"), zone("remote-1", "zone-a"), zone("remote-2", "zone-b")},
			kept("pod-1", "remote-1")},
		{"one without", []endpoint{zone("pod-1", "zone-b"), zone("remote-1", "zone-a"), hinted("remote-2", "")},
			kept("pod-1", "remote-1", "remote-2")},
		{"none for this zone", []endpoint{zone("pod-1", "zone-b"), zone("remote-1", "zone-c")},
			kept("pod-1", "remote-1")},
		{"node before zone", []endpoint{
			hinted("pod-1", "forZones: [{name: zone-b}], forNodes: [{name: node1}]"),
			hinted("remote-1", "forZones: [{name: zone-a}], forNodes: [{name: node2}]")},
			kept("pod-1")},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := service{name: "hinted", number: number + 1, endpoints: c.endpoints}
			p.set(t, s)
			p.check(t, fromAll([]string{client}, s, c.want, clusterIP))
		})
	}
}
