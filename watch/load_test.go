package watch

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

func TestLoadReturnsASnapshotAndAllProblems(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(web("a", 1)+nodeManifest("n1", "192.168.7.1")), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "b.yaml"), []byte(web("b", 0)), 0o600))
	told := 0
	s, problems, err := Load(dir, Options{Observer: func(Problem) { told++ }})
	must(t, err)
	if s.Changed != nil || s.Node.Name != "n1" || !port("a", 1)(s) || s.Services.Len() != 1 {
		t.Errorf("snapshot is %+v", s)
	}
	if len(problems) != 1 || problems[0].File != "b.yaml" || told != 0 {
		t.Errorf("problems are %v, told %d times", problems, told)
	}
}

func TestReadReturnsTheErrorOfItsReader(t *testing.T) {
	broken := errors.New("broken")
	if _, _, err := Read("m.yaml", iotest.ErrReader(broken), Options{}); !errors.Is(err, broken) {
		t.Errorf("error is %v", err)
	}
}

func TestFromObjectsTakesThemAsFromAServer(t *testing.T) {
	bad := webService(named("bad"), func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"x"} })
	s, problems := FromObjects(Options{NodeName: "n1"},
		webService(), webSlice(), bad, webService(headlessService),
		node("n1", "192.168.7.1"), node("n2", "192.168.7.2"), &corev1.Pod{}, nil)
	if !has("web", "bad")(s) || len(s.Services.Get(webFacts().Name).Endpoints) != 1 {
		t.Errorf("services are %v", byName(s.Services))
	}
	if want := (model.Node{Name: "n1", Addresses: addrs("192.168.7.1")}); !s.Node.Equal(want) {
		t.Errorf("node is %+v, want %+v", s.Node, want)
	}
	want := []string{
		"*v1.Pod is none of Service, EndpointSlice, Node",
		"<nil> is none of Service, EndpointSlice, Node",
		`service default/bad: spec.externalIPs[0]: "x" is not an IP address`,
	}
	if diff := cmp.Diff(want, texts(problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// FuzzRead looks for bytes that make a source panic, or a snapshot that breaks
// a promise of package model.
func FuzzRead(f *testing.F) {
	f.Add(".yaml", []byte(web("a", 1)+nodeManifest("n1", "192.168.7.1")))
	f.Add(".yaml", []byte("apiVersion: v1\nkind: List\nitems: [{kind: Service}, 7, null, []]\n---\n&a [*a]\n"))
	f.Add(".yaml", []byte(service(oneIP, "type: LoadBalancer", "sessionAffinity: ClientIP", "loadBalancerSourceRanges: [' ::ffff:1.2.3.0/120 ']")))
	f.Add(".json", []byte(`{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"a"},"addressType":"IPv4","endpoints":[{}]}`))
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		s, problems, err := Read("m"+kind, bytes.NewReader(data), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for svc := range s.Services.All() {
			checkService(t, svc)
		}
		for _, p := range problems {
			if p.Message == "" || p.Line < 1 {
				t.Errorf("problem %+v says too little", p)
			}
		}
	})
}

// FuzzFromObjects looks for objects, as no server would let them pass, that
// make a source panic, or a snapshot that breaks a promise of package model.
func FuzzFromObjects(f *testing.F) {
	marshal := func(v any) []byte {
		data, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		return data
	}
	f.Add(marshal(webService()), marshal(webSlice()), marshal(node("n1", "192.168.7.1")))
	f.Add([]byte(`{"spec":{"clusterIP":"1","clusterIPs":["::ffff:1.2.3.4"],"ipFamilies":["IPv6"],"sessionAffinity":"ClientIP"}}`),
		[]byte(`{"addressType":"IPv6","ports":[{"port":-1},{}],"endpoints":[{"addresses":["::ffff:1.2.3.4"]},{}]}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, service, endpoints, node []byte) {
		svc, es, n := &corev1.Service{}, &discoveryv1.EndpointSlice{}, &corev1.Node{}
		// What can be read of it is in the object, also after an error.
		_ = json.Unmarshal(service, svc)
		_ = json.Unmarshal(endpoints, es)
		_ = json.Unmarshal(node, n)
		svc.Namespace, svc.Name = "default", "web"
		es.Namespace, es.Labels = "default", map[string]string{discoveryv1.LabelServiceName: "web"}
		s, problems := FromObjects(Options{}, svc, es, n)
		for svc := range s.Services.All() {
			checkService(t, svc)
		}
		for _, p := range problems {
			if p.Object == "" || p.Message == "" {
				t.Errorf("problem %+v says too little", p)
			}
		}
		for _, p := range s.Node.PodCIDRs {
			checkPrefix(t, p)
		}
	})
}

func checkPrefix(t *testing.T, p netip.Prefix) {
	t.Helper()
	if !p.IsValid() || p != p.Masked() || p.Bits() > model.FamilyOf(p.Addr()).Bits() {
		t.Errorf("prefix %v is none", p)
	}
}

func checkService(t *testing.T, svc *model.Service) {
	t.Helper()
	if svc.Name.Name == "" || svc.Name.Namespace == "" {
		t.Errorf("service %+v has no name", svc)
	}
	for _, p := range svc.Ports {
		if p.Number == 0 {
			t.Errorf("service %v has port %+v", svc.Name, p)
		}
	}
	for _, family := range model.Families {
		if len(model.OfFamily(svc.ClusterIPs, family)) > 1 {
			t.Errorf("service %v has cluster IPs %v", svc.Name, svc.ClusterIPs)
		}
	}
	for _, p := range svc.SourceRanges {
		checkPrefix(t, p)
	}
	for _, list := range svc.Endpoints {
		for i, e := range list {
			if !e.Addr.IsValid() || e.Addr.Port() == 0 || i > 0 && list[i-1].Addr.String() >= e.Addr.String() {
				t.Errorf("service %v has endpoints %v", svc.Name, list)
			}
		}
	}
}
