package main

import (
	"net/netip"

	"github.com/nlproxy/nlproxy/integration/lab"
)

// What servers see of a client whose address is translated: the node's address
// on the side of the endpoint.
var (
	nodeSeen  = []string{"10.244.1.1", "192.168.7.1"}
	nodeSeen6 = []string{"fd00:244:1::1", "fd00:7::1"}
)

// steps are the demonstration, in its order. The services are those of the
// manifests beside this file.
var steps = []step{
	{"Cluster IP", "pod-3", "tcp", at("10.96.0.10:80"), by("pod-1", "pod-2", "remote-1").seenAs("10.244.1.4"),
		"a pod's address is left as it is"},
	{"Cluster IP", "node", "tcp", at("10.96.0.10:80"), by("pod-1", "pod-2", "remote-1").seenAs(nodeSeen...),
		"no pod, so masqueraded: replies must come back here"},

	{"Several ports and protocols", "pod-3", "tcp", at("10.96.0.11:80"), by("pod-1", "pod-2").seenAs("10.244.1.4"),
		"port 80 goes to 8080"},
	{"Several ports and protocols", "pod-3", "tcp", at("10.96.0.11:9100"), by("pod-1:9090", "pod-2:9090").seenAs("10.244.1.4"),
		"port 9100 goes to 9090"},
	{"Several ports and protocols", "pod-3", "udp", at("10.96.0.11:53"), by("pod-1", "pod-2").seenAs("10.244.1.4"),
		"each socket is a flow of its own"},
	{"Several ports and protocols", "pod-3", "sctp", at("10.96.0.11:3868"), by("pod-1", "pod-2").seenAs("10.244.1.4"),
		"single-homed associations"},

	{"Node port", "outside", "tcp", at("192.168.7.1:30080"), by("pod-1", "remote-1").seenAs(nodeSeen...),
		"masqueraded, so that replies pass this node"},
	{"Node port", "outside", "udp", at("192.168.7.1:30053"), by("pod-1", "remote-1").seenAs(nodeSeen...),
		"masqueraded, so that replies pass this node"},
	{"Node port", "node", "tcp", at("192.168.8.1:30080"), by("pod-1", "remote-1").seenAs(nodeSeen...),
		"on every address of the node"},
	{"Node port", "node", "tcp", at("127.0.0.1:30080"), by("pod-1", "remote-1").seenAs(nodeSeen...),
		"on 127.0.0.1 as well, by route_localnet"},

	{"Load balancer, policy Cluster, source ranges", "outside", "tcp", at("203.0.113.10:80"), by("pod-1", "remote-1").seenAs(nodeSeen...),
		"the client is in 192.168.7.0/24, which may"},
	{"Load balancer, policy Cluster, source ranges", "pod-3", "tcp", at("203.0.113.10:80"), dropped,
		"10.244.1.4 is in no range that may"},
	{"Load balancer, policy Local", "outside", "tcp", at("203.0.113.11:80"), by("pod-1", "pod-2").seenAs("192.168.7.100"),
		"only endpoints of this node, and the client's own address"},
	{"Load balancer, policy Local", "pod-3", "tcp", at("203.0.113.11:80"), by("pod-1", "pod-2", "remote-1").seenAs("10.244.1.4"),
		"for pods the policy does not count"},
	{"Load balancer, policy Local", "outside", "tcp", at("203.0.113.12:80"), dropped,
		"no endpoint is on this node; the balancer should not have come here"},

	{"External IP", "outside", "tcp", at("198.51.100.10:80"), by("pod-2").seenAs("10.244.1.1"),
		"masqueraded, so that replies pass this node"},
	{"Session affinity", "pod-3", "tcp", at("10.96.0.17:80"), by("pod-1", "pod-2", "remote-1").asOne(),
		"a client stays with its endpoint"},
	{"Internal traffic policy Local", "pod-3", "tcp", at("10.96.0.18:80"), by("pod-1").seenAs("10.244.1.4"),
		"only endpoints of this node"},
	{"Internal traffic policy Local", "pod-3", "tcp", at("10.96.0.19:80"), dropped,
		"no endpoint is on this node"},
	{"Hairpin", "pod-1", "tcp", at("10.96.0.20:80"), by("pod-1").seenAs("10.244.1.1"),
		"masqueraded, or the pod would reply to itself directly"},

	{"No endpoints", "pod-3", "tcp", at("10.96.0.21:80"), refused, "an error now is better than a time-out later"},
	{"No endpoints", "pod-3", "udp", at("10.96.0.21:53"), refused, "by ICMP"},
	{"No endpoints", "outside", "tcp", at("192.168.7.1:30084"), refused, "on the node port too"},

	{"Terminating endpoints", "pod-3", "tcp", at("10.96.0.22:80"), by("pod-2").seenAs("10.244.1.4"),
		"pod-1 is terminating and pod-2 is ready"},
	{"Terminating endpoints", "pod-3", "tcp", at("10.96.0.23:80"), by("pod-1").seenAs("10.244.1.4"),
		"all are terminating: those that still serve are the last resort"},

	{"Dual stack", "pod-3", "tcp", at("[fd00:96::10]:80"), by("pod-1", "pod-2", "remote-1").seenAs("fd00:244:1::4"),
		"the same in IPv6"},
	{"Dual stack", "outside", "tcp", at("[fd00:7::1]:30080"), by("pod-1", "remote-1").seenAs(nodeSeen6...),
		"node ports too"},
	{"Dual stack", "outside", "udp", at("[fd00:7::1]:30053"), by("pod-1", "remote-1").seenAs(nodeSeen6...),
		"and UDP"},
}

var (
	refused = want{kind: lab.Refused}
	dropped = want{kind: lab.TimedOut}
)

func at(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// by wants these servers to answer in equal shares.
func by(servers ...string) want { return want{kind: lab.Answered, by: servers} }

func (w want) seenAs(addresses ...string) want {
	w.seen = addresses
	return w
}

// asOne wants only one of the servers to answer.
func (w want) asOne() want {
	w.together = true
	return w
}
