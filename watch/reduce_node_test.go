package watch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

func TestReduceNode(t *testing.T) {
	internal := func(s string) corev1.NodeAddress {
		return corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: s}
	}
	external := func(s string) corev1.NodeAddress {
		return corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: s}
	}
	for name, test := range map[string]struct {
		addresses []corev1.NodeAddress
		cidrs     []string
		want      model.Node
		problems  []string
	}{
		"internal before external, one of each family": {
			addresses: []corev1.NodeAddress{
				external("203.0.113.1"), {Type: corev1.NodeHostName, Address: "n1"}, internal("192.168.7.1"), internal("192.168.7.2"), internal("fd00:7::1"),
			},
			want: model.Node{Addresses: addrs("192.168.7.1", "fd00:7::1")},
		},
		"the second family may be external": {
			addresses: []corev1.NodeAddress{external("203.0.113.1"), internal("fd00:7::1")},
			want:      model.Node{Addresses: addrs("fd00:7::1", "203.0.113.1")},
		},
		"a bad address costs only itself": {
			addresses: []corev1.NodeAddress{internal("n1"), internal("192.168.007.001")},
			want:      model.Node{Addresses: addrs("192.168.7.1")},
			problems:  []string{`node n1: status.addresses[0].address: "n1" is not an IP address`},
		},
		"one pod CIDR of each family": {
			addresses: []corev1.NodeAddress{internal("192.168.7.1")},
			cidrs:     []string{"10.244.1.0/24", "fd00:244:1::/64", "10.244.2.0/24", "x"},
			want:      model.Node{Addresses: addrs("192.168.7.1"), PodCIDRs: prefixes("10.244.1.0/24", "fd00:244:1::/64")},
			problems:  []string{"node n1: spec.podCIDRs[2]: 10.244.2.0/24 is a second IPv4 range", `node n1: spec.podCIDRs[3]: "x" is not a CIDR`},
		},
		"no address": {
			addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "n1"}},
			problems:  []string{"node n1: status.addresses: has no IP address; those known before, if any, stay in force"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := reduceNode(&corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelTopologyZone: "a"}},
				Spec:       corev1.NodeSpec{PodCIDRs: test.cidrs},
				Status:     corev1.NodeStatus{Addresses: test.addresses},
			})
			test.want.Name, test.want.Zone = "n1", "a"
			if diff := cmp.Diff(test.want, got.Node, compareFacts); diff != "" {
				t.Errorf("node (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.problems, texts(problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
