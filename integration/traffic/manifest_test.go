package traffic

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/nlproxy/nlproxy/integration/lab"
)

// The ports of every service here, by name and protocol those of networks().
const (
	port       = 80
	targetPort = 8080
)

// networks are those that the kernel has sockets for.
func networks() []string {
	if lab.HasSCTP() {
		return []string{"tcp", "udp", "sctp"}
	}
	return []string{"tcp", "udp"}
}

// service is a Service of both families and the EndpointSlices behind it.
type service struct {
	name string
	// number, 1 to 99, makes all its addresses and its node port.
	number int
	// kind is its type; empty for ClusterIP.
	kind string
	// spec is more of its spec, and ingress what its status has in place of
	// one address of each family; both as YAML in flow style.
	spec, ingress string
	endpoints     []endpoint
}

// endpoint is one at a place of the lab.
type endpoint struct {
	place string
	// conditions and hints as YAML in flow style.
	conditions, hints string
}

// The conditions of endpoints.
const (
	ready       = "ready: true, serving: true, terminating: false"
	unready     = "ready: false, serving: false, terminating: false"
	terminating = "ready: false, serving: true, terminating: true"
	gone        = "ready: false, serving: false, terminating: true"
)

// at are ready endpoints at these places.
func at(places ...string) []endpoint { return all(ready, places...) }

// all are endpoints at these places in one condition.
func all(conditions string, places ...string) []endpoint {
	var list []endpoint
	for _, p := range places {
		list = append(list, endpoint{place: p, conditions: conditions})
	}
	return list
}

// with is s with other endpoints.
func (s service) with(endpoints ...endpoint) service {
	s.endpoints = endpoints
	return s
}

// A frontend is where a service is reached in the one or the other family.
type frontend func(s service, v6 bool) netip.AddrPort

func clusterIP(s service, v6 bool) netip.AddrPort {
	return numbered("10.96.0.%d", "fd00:96::%d", s.number, v6, port)
}

func externalIP(s service, v6 bool) netip.AddrPort {
	return numbered("198.51.100.%d", "2001:db8:e::%d", s.number, v6, port)
}

func ingress(s service, v6 bool) netip.AddrPort {
	return numbered("203.0.113.%d", "2001:db8:1::%d", s.number, v6, port)
}

// secondIngress is the address for services with two.
func secondIngress(s service, v6 bool) netip.AddrPort {
	return numbered("203.0.113.%d", "2001:db8:1::%d", 100+s.number, v6, port)
}

func nodePort(s service, v6 bool) netip.AddrPort {
	return nodePortOn("192.168.7.1", "fd00:7::1")(s, v6)
}

// nodePortOn is the node port on given addresses.
func nodePortOn(v4, v6 string) frontend {
	return func(s service, six bool) netip.AddrPort {
		a := v4
		if six {
			a = v6
		}
		return netip.AddrPortFrom(netip.MustParseAddr(a), uint16(30000+s.number))
	}
}

// numbered makes an address; the number is read as hexadecimal in IPv6, which
// does not matter as long as everybody reads it so.
func numbered(v4, v6 string, n int, six bool, port uint16) netip.AddrPort {
	format := v4
	if six {
		format = v6
	}
	return netip.AddrPortFrom(netip.MustParseAddr(fmt.Sprintf(format, n)), port)
}

// both is a frontend's addresses as a YAML list.
func both(f frontend, s service) string {
	return fmt.Sprintf("%q, %q", f(s, false).Addr(), f(s, true).Addr())
}

// manifests are the node and services as YAML.
func manifests(services ...service) string {
	var text strings.Builder
	text.WriteString(nodeManifest)
	for _, s := range services {
		text.WriteString(s.manifest())
		for _, v6 := range []bool{false, true} {
			text.WriteString(s.slice(v6))
		}
	}
	return text.String()
}

const nodeManifest = `---
apiVersion: v1
kind: Node
metadata: {name: node1, labels: {topology.kubernetes.io/zone: zone-a}}
spec: {podCIDRs: [10.244.1.0/24, "fd00:244:1::/64"]}
status: {addresses: [{type: InternalIP, address: 192.168.7.1}, {type: InternalIP, address: "fd00:7::1"}]}
`

func (s service) manifest() string {
	kind, ports, status := "ClusterIP", "", ""
	if s.kind != "" {
		kind = s.kind
	}
	for _, n := range networks() {
		ports += fmt.Sprintf("{name: %s, protocol: %s, port: %d, targetPort: %d", n, strings.ToUpper(n), port, targetPort)
		if kind != "ClusterIP" {
			ports += fmt.Sprintf(", nodePort: %d", 30000+s.number)
		}
		ports += "}, "
	}
	if kind == "LoadBalancer" {
		addresses := s.ingress
		if addresses == "" {
			addresses = fmt.Sprintf("{ip: %q}, {ip: %q}", ingress(s, false).Addr(), ingress(s, true).Addr())
		}
		status = fmt.Sprintf("status: {loadBalancer: {ingress: [%s]}}\n", addresses)
	}
	return fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: %s, namespace: default}
spec: {type: %s, ipFamilyPolicy: RequireDualStack, clusterIP: %s, clusterIPs: [%s], ports: [%s], %s}
%s`, s.name, kind, clusterIP(s, false).Addr(), both(clusterIP, s), ports, s.spec, status)
}

// slice is the EndpointSlice of one family.
func (s service) slice(v6 bool) string {
	family, ports, endpoints := "IPv4", "", ""
	if v6 {
		family = "IPv6"
	}
	for _, n := range networks() {
		ports += fmt.Sprintf("{name: %s, protocol: %s, port: %d}, ", n, strings.ToUpper(n), targetPort)
	}
	for _, e := range s.endpoints {
		endpoints += fmt.Sprintf("{addresses: [%q], nodeName: %s, conditions: {%s}, hints: {%s}}, ",
			addressOf(e.place, v6), nodeOf(e.place), e.conditions, e.hints)
	}
	return fmt.Sprintf(`---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %s-%s, namespace: default, labels: {kubernetes.io/service-name: %s}}
addressType: %s
ports: [%s]
endpoints: [%s]
`, s.name, strings.ToLower(family), s.name, family, ports, endpoints)
}

// nodeOf is the node that a place is on.
func nodeOf(place string) string {
	if strings.HasPrefix(place, "pod-") {
		return "node1"
	}
	return "node2"
}

// addressOf is the address that the lab gives pod-N and remote-N, and the one
// of absent-N, which nobody has.
func addressOf(place string, v6 bool) netip.Addr {
	kind, number, _ := strings.Cut(place, "-")
	subnet := map[string]int{"pod": 0x0af40100, "remote": 0x0af40200, "absent": 0x0af50000}[kind]
	n, err := strconv.Atoi(number)
	if err != nil || subnet == 0 {
		panic(fmt.Sprintf("no endpoint can be at %q", place))
	}
	host := subnet + n + 1
	if v6 {
		return netip.MustParseAddr(fmt.Sprintf("fd00:%d:%x::%x", host>>16&0xff, host>>8&0xff, host&0xff))
	}
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(host))))
}
