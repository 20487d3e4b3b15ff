package watch

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

var compareFacts = cmp.Options{
	cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}, netip.AddrPort{}),
	cmpopts.EquateEmpty(),
}

// webService returns a Service as an API server serves it, changed by edits.
func webService(edits ...func(*corev1.Service)) *corev1.Service {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: corev1.ServiceSpec{
			Type:       corev1.ServiceTypeClusterIP,
			ClusterIP:  "10.96.0.10",
			ClusterIPs: []string{"10.96.0.10"},
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports:      []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}},
		},
	}
	for _, edit := range edits {
		edit(svc)
	}
	return svc
}

// webFacts returns what webService becomes, changed by edits.
func webFacts(edits ...func(*model.Service)) *model.Service {
	svc := &model.Service{
		Name:       model.Name{Namespace: "default", Name: "web"},
		Ports:      []model.Port{{PortKey: model.PortKey{Port: "http", Protocol: model.TCP}, Number: 80}},
		ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.10")},
	}
	for _, edit := range edits {
		edit(svc)
	}
	return svc
}

func addrs(list ...string) []netip.Addr {
	var all []netip.Addr
	for _, s := range list {
		all = append(all, netip.MustParseAddr(s))
	}
	return all
}

func prefixes(list ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, s := range list {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

func texts(problems []Problem) []string {
	var all []string
	for _, p := range problems {
		all = append(all, p.String())
	}
	return all
}

func TestReduceService(t *testing.T) {
	type test struct {
		edit     func(*corev1.Service)
		want     *model.Service // nil: not served
		problems []string
	}
	local := corev1.ServiceInternalTrafficPolicyLocal
	proxy, vip := corev1.LoadBalancerIPModeProxy, corev1.LoadBalancerIPModeVIP
	affinity := func(seconds *int32) func(*corev1.Service) {
		return func(s *corev1.Service) {
			s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
			s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: seconds}}
		}
	}
	for name, test := range map[string]test{
		"as it is":                              {func(*corev1.Service) {}, webFacts(), nil},
		"headless":                              {func(s *corev1.Service) { s.Spec.ClusterIP = "None"; s.Spec.ClusterIPs = []string{"None"} }, nil, nil},
		"without a cluster IP yet":              {func(s *corev1.Service) { s.Spec.ClusterIP = ""; s.Spec.ClusterIPs = nil }, nil, nil},
		"external name, even with a cluster IP": {func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }, nil, nil},
		"of another proxy":                      {func(s *corev1.Service) { s.Labels = map[string]string{labelProxyName: ""} }, nil, nil},
		"dual stack keeps the order of families": {
			func(s *corev1.Service) {
				s.Spec.ClusterIPs = []string{"fd00:96::10", "10.96.0.10"}
				s.Spec.ClusterIP = "fd00:96::10"
				s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
			},
			webFacts(func(s *model.Service) { s.ClusterIPs = addrs("fd00:96::10", "10.96.0.10") }), nil,
		},
		"an address beyond the families does not count": {
			func(s *corev1.Service) { s.Spec.ClusterIPs = []string{"10.96.0.10", "fd00:96::10"} },
			webFacts(), nil,
		},
		"no families and no list, as servers before dual stack": {
			func(s *corev1.Service) { s.Spec.ClusterIPs, s.Spec.IPFamilies = nil, nil },
			webFacts(), nil,
		},
		"a cluster IP of the wrong family": {
			func(s *corev1.Service) {
				s.Spec.ClusterIPs = []string{"10.96.0.10", "10.96.0.11"}
				s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
			},
			webFacts(),
			[]string{"service default/web: spec.clusterIPs[1]: 10.96.0.11 is not an IPv6 address, as spec.ipFamilies says"},
		},
		"two cluster IPs of one family": {
			func(s *corev1.Service) {
				s.Spec.ClusterIPs = []string{"10.96.0.10", "10.96.0.11"}
				s.Spec.IPFamilies = nil
			},
			webFacts(),
			[]string{"service default/web: spec.clusterIPs[1]: 10.96.0.11 is a second IPv4 address"},
		},
		"leading zeros": {
			func(s *corev1.Service) { s.Spec.ClusterIP = "010.096.000.010"; s.Spec.ClusterIPs = nil },
			webFacts(), nil,
		},
		"ports of every protocol; none is TCP": {
			func(s *corev1.Service) {
				s.Spec.Ports = []corev1.ServicePort{
					{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53, NodePort: 30053},
					{Name: "dns", Protocol: corev1.ProtocolTCP, Port: 53},
					{Name: "sig", Protocol: corev1.ProtocolSCTP, Port: 1},
					{Name: "any", Port: 65535},
				}
			},
			webFacts(func(s *model.Service) {
				s.Ports = []model.Port{
					{PortKey: model.PortKey{Port: "dns", Protocol: model.UDP}, Number: 53, NodePort: 30053},
					{PortKey: model.PortKey{Port: "dns", Protocol: model.TCP}, Number: 53},
					{PortKey: model.PortKey{Port: "sig", Protocol: model.SCTP}, Number: 1},
					{PortKey: model.PortKey{Port: "any", Protocol: model.TCP}, Number: 65535},
				}
			}), nil,
		},
		"bad ports cost only themselves": {
			func(s *corev1.Service) {
				s.Spec.Ports = append(s.Spec.Ports,
					corev1.ServicePort{Name: "zero", Port: 0},
					corev1.ServicePort{Name: "big", Port: 70000},
					corev1.ServicePort{Name: "odd", Port: 1, Protocol: "ICMP"},
					corev1.ServicePort{Name: "http", Port: 8080, Protocol: corev1.ProtocolTCP},
					corev1.ServicePort{Name: "node", Port: 81, NodePort: -1},
				)
			},
			webFacts(func(s *model.Service) {
				s.Ports = append(s.Ports, model.Port{PortKey: model.PortKey{Port: "node", Protocol: model.TCP}, Number: 81})
			}),
			[]string{
				"service default/web: spec.ports[1].port: 0 is not between 1 and 65535",
				"service default/web: spec.ports[2].port: 70000 is not between 1 and 65535",
				`service default/web: spec.ports[3].protocol: protocol "ICMP" is none of TCP, UDP, SCTP`,
				`service default/web: spec.ports[4].name: "http" is there twice for TCP`,
				"service default/web: spec.ports[5].nodePort: -1 is not between 1 and 65535",
			},
		},
		"external IPs, blank ones left out silently": {
			func(s *corev1.Service) {
				s.Spec.ExternalIPs = []string{"203.0.113.7", " ", "", "2001:db8::7", "::ffff:203.0.113.8", "203.0.113.007", "here", "fe80::1%eth0"}
			},
			webFacts(func(s *model.Service) {
				s.ExternalIPs = addrs("203.0.113.7", "2001:db8::7", "203.0.113.8", "203.0.113.7")
			}),
			[]string{
				`service default/web: spec.externalIPs[6]: "here" is not an IP address`,
				`service default/web: spec.externalIPs[7]: "fe80::1%eth0" is not an IP address`,
			},
		},
		"ingress of the balancer that is no VIP is left out": {
			func(s *corev1.Service) {
				s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{
					{IP: "51.0.0.1", IPMode: &proxy}, {IP: "51.0.0.2"}, {IP: "2001:db8::3", IPMode: &vip}, {Hostname: "lb.example"}, {IP: "x"},
				}
			},
			webFacts(func(s *model.Service) { s.LoadBalancerIPs = addrs("51.0.0.2", "2001:db8::3") }),
			[]string{`service default/web: status.loadBalancer.ingress[4].ip: "x" is not an IP address`},
		},
		"source ranges are trimmed and masked": {
			func(s *corev1.Service) {
				s.Spec.LoadBalancerSourceRanges = []string{" 192.168.0.5/24 ", "2001:db8::/32\t", "10.0.0.0/08", "::ffff:10.1.2.3/112", "0.0.0.0/0", "", "1.2.3.4", "::ffff:0:0/90"}
			},
			webFacts(func(s *model.Service) {
				s.SourceRanges = prefixes("192.168.0.0/24", "2001:db8::/32", "10.0.0.0/8", "10.1.0.0/16", "0.0.0.0/0", "::ffc0:0:0/90")
			}),
			[]string{
				`service default/web: spec.loadBalancerSourceRanges[6]: "1.2.3.4" is not a CIDR`,
			},
		},
		"internal policy": {
			func(s *corev1.Service) { s.Spec.InternalTrafficPolicy = &local },
			webFacts(func(s *model.Service) { s.InternalLocal = true }), nil,
		},
		"external policy where nothing external leads here": {
			func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal },
			webFacts(), nil,
		},
		"external policy of external IPs": {
			func(s *corev1.Service) {
				s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
				s.Spec.ExternalIPs = []string{"203.0.113.7"}
			},
			webFacts(func(s *model.Service) { s.ExternalLocal = true; s.ExternalIPs = addrs("203.0.113.7") }), nil,
		},
		"external policy of node ports has no health check": {
			func(s *corev1.Service) {
				s.Spec.Type = corev1.ServiceTypeNodePort
				s.Spec.Ports[0].NodePort = 30080
				s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
				s.Spec.HealthCheckNodePort = 32000
			},
			webFacts(func(s *model.Service) { s.ExternalLocal = true; s.Ports[0].NodePort = 30080 }), nil,
		},
		"missing node port": {
			func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort },
			webFacts(),
			[]string{"service default/web: spec.ports[0].nodePort: 0 is not between 1 and 65535"},
		},
		"health check of a balancer with the local policy": {
			func(s *corev1.Service) {
				s.Spec.Type = corev1.ServiceTypeLoadBalancer
				s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
				s.Spec.HealthCheckNodePort = 32000
			},
			webFacts(func(s *model.Service) { s.ExternalLocal = true; s.HealthCheckNodePort = 32000 }), nil,
		},
		"no health check for the cluster policy": {
			func(s *corev1.Service) {
				s.Spec.Type = corev1.ServiceTypeLoadBalancer
				s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
				s.Spec.HealthCheckNodePort = 32000
			},
			webFacts(), nil,
		},
		"missing health check port": {
			func(s *corev1.Service) {
				s.Spec.Type = corev1.ServiceTypeLoadBalancer
				s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
			},
			webFacts(func(s *model.Service) { s.ExternalLocal = true }),
			[]string{"service default/web: spec.healthCheckNodePort: 0 is not between 1 and 65535"},
		},
		"affinity": {affinity(new(int32(60))), webFacts(func(s *model.Service) { s.Affinity = time.Minute }), nil},
		"affinity without a timeout lasts three hours": {
			affinity(nil), webFacts(func(s *model.Service) { s.Affinity = 3 * time.Hour }), nil,
		},
		"affinity without any config": {
			func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP },
			webFacts(func(s *model.Service) { s.Affinity = 3 * time.Hour }), nil,
		},
		"affinity out of range": {
			affinity(new(int32(86401))), webFacts(func(s *model.Service) { s.Affinity = 3 * time.Hour }),
			[]string{"service default/web: spec.sessionAffinityConfig.clientIP.timeoutSeconds: 86401 is not between 1 and 86400; 10800 instead"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := reduceService(webService(test.edit))
			if diff := cmp.Diff(test.want, got, compareFacts); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.problems, texts(problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
