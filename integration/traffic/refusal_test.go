package traffic

import "testing"

func TestServiceWithoutUsableEndpointsIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	local := "externalTrafficPolicy: Local, healthCheckNodePort: "
	empty := service{name: "empty", number: 1, kind: "LoadBalancer"}
	empty.spec = "externalIPs: [" + both(externalIP, empty) + "]"
	sick := service{name: "sick", number: 2, kind: "LoadBalancer",
		endpoints: append(all(unready, "pod-1", "remote-1"), all(gone, "pod-2")...)}
	sick.spec = "externalIPs: [" + both(externalIP, sick) + "]"
	nowhere := service{name: "nowhere", number: 3, kind: "LoadBalancer", spec: local + "31003"}
	inside := service{name: "inside", number: 4, spec: "internalTrafficPolicy: Local",
		endpoints: all(unready, "pod-1")}

	p := newProxy(t, settings())
	p.set(t, empty, sick, nowhere, inside)
	var rows []row
	for _, s := range []service{empty, sick} {
		rows = append(rows, fromAll(everybody(), s, refused(), clusterIP, nodePort)...)
		rows = append(rows, fromAll([]string{client, "outside"}, s, refused(), externalIP, ingress)...)
		// As with kube-proxy, the node's own packets to these addresses go out.
		rows = append(rows, fromAll([]string{"node"}, s, untouched(), externalIP, ingress)...)
	}
	rows = append(rows, fromAll(everybody(), nowhere, refused(), clusterIP, nodePort)...)
	rows = append(rows, fromAll([]string{client, "outside"}, nowhere, refused(), ingress)...)
	rows = append(rows, fromAll(everybody(), inside, refused(), clusterIP)...)
	p.check(t, rows)
}

func TestRefusalFollowsTheEndpoints(t *testing.T) {
	t.Parallel()
	p := newProxy(t, settings())
	s := service{name: "web", number: 1, kind: "NodePort"}
	for _, step := range []struct {
		endpoints []endpoint
		pods      want
		others    want
	}{
		{nil, refused(), refused()},
		{at("pod-1"), kept("pod-1"), masqueraded("pod-1")},
		{all(unready, "pod-1"), refused(), refused()},
		{at("remote-1", "pod-1"), kept("pod-1", "remote-1"), masqueraded("pod-1", "remote-1")},
		{nil, refused(), refused()},
	} {
		s := s.with(step.endpoints...)
		p.set(t, s)
		p.check(t, append(
			fromAll([]string{client}, s, step.pods, clusterIP),
			fromAll([]string{"node", "outside"}, s, step.others, clusterIP, nodePort)...))
	}
	p.set(t)
	p.check(t, fromAll(everybody(), s, untouched(), clusterIP))
}

func TestLocalPolicyWithoutLocalEndpointsDropsWhatComesFromOutside(t *testing.T) {
	t.Parallel()
	away := service{name: "away", number: 1, kind: "LoadBalancer", endpoints: at("remote-1", "remote-2")}
	away.spec = "externalTrafficPolicy: Local, healthCheckNodePort: 31001, externalIPs: [" + both(externalIP, away) + "]"
	// An endpoint here that is not ready does not make a difference.
	sick := away
	sick.name, sick.number = "sick", 2
	sick.spec = "externalTrafficPolicy: Local, healthCheckNodePort: 31002"
	sick.endpoints = append(all(unready, "pod-1"), at("remote-1")...)

	p := newProxy(t, settings())
	p.set(t, away, sick)
	rows := fromAll([]string{"outside"}, away, dropped(), ingress, externalIP, nodePort)
	rows = append(rows, fromAll([]string{"outside"}, sick, dropped(), ingress, nodePort)...)
	rows = append(rows, fromAll([]string{client}, away, kept("remote-1", "remote-2"), clusterIP, ingress, externalIP, nodePort)...)
	rows = append(rows, fromAll([]string{"node"}, away, masqueraded("remote-1", "remote-2"), clusterIP, ingress, externalIP, nodePort)...)
	rows = append(rows, fromAll([]string{client}, sick, kept("remote-1"), ingress, nodePort)...)
	p.check(t, rows)
}
