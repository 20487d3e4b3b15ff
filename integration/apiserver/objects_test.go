package apiserver

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
)

// serving is a rig whose daemon runs in an empty file system.
func serving(t *testing.T) (*rig, *daemon.Daemon) {
	t.Helper()
	r := newRig(t)
	d := daemon.Start(t, r.inside(t, daemon.NewRoot(t)))
	d.Synchronised(t)
	return r, d
}

func TestObjectsAreFollowedFromAnEmptyFileSystem(t *testing.T) {
	r, d := serving(t)
	web := at("web", 1, r.Pods[1])
	node := r.Self.IPv4()
	for _, step := range []struct {
		name string
		do   func()
		want func(lab.Outcome) bool
	}{
		{"created", func() { r.create(t, web) }, labtest.By("pod-2")},
		{"endpoint elsewhere", func() { web.Endpoints = objects.At(r.Remote[0]); r.updateSlice(t, web) }, labtest.By("remote-1")},
		{"no endpoint", func() { web.Endpoints = nil; r.updateSlice(t, web) }, labtest.Ends(lab.Refused)},
		{"an endpoint again", func() { web.Endpoints = objects.At(r.Pods[2]); r.updateSlice(t, web) }, labtest.By("pod-3")},
		{"no slice", func() { r.removeSlice(t, web) }, labtest.Ends(lab.Refused)},
		{"deleted", func() { r.removeService(t, web) }, labtest.Ends(lab.Unreachable)},
		{"created again", func() { r.create(t, web) }, labtest.By("pod-3")},
	} {
		t.Log(step.name)
		step.do()
		labtest.Becomes(t, r.Pods[0], "tcp", web.ClusterIP(), step.want)
	}
	labtest.Becomes(t, r.Outside, "tcp", objects.Service{Number: 1}.NodePort(node), labtest.Ends(lab.Refused))
	web.Type = corev1.ServiceTypeNodePort
	r.updateService(t, web)
	labtest.Becomes(t, r.Outside, "tcp", web.NodePort(node), labtest.By("pod-3"))
	d.CheckNoChild(t)
}

func TestServicesOfOthersNeverArrive(t *testing.T) {
	r, d := serving(t)
	web := at("web", 1, r.Pods[1])
	headless := at("headless", 2, r.Pods[1])
	headless.Headless = true
	foreign := at("foreign", 3, r.Pods[1])
	foreign.Labels = ofAnother
	marker := at("marker", 4, r.Pods[1])
	r.create(t, headless, foreign, web, marker)
	r.becomes(t, web, "pod-2")
	r.becomes(t, marker, "pod-2")

	live := web
	live.Labels = ofAnother
	r.updateService(t, live)
	r.ends(t, web, lab.Unreachable)
	labtest.Answers(t, r.Pods[0], "tcp", marker.ClusterIP(), "pod-2")
	r.updateService(t, web)
	r.becomes(t, web, "pod-2")

	// By the report of another change all those of the changes before are
	// there.
	marker.Endpoints = objects.At(r.Pods[2])
	r.updateSlice(t, marker)
	r.becomes(t, marker, "pod-3")
	r.ends(t, foreign, lab.Unreachable)
	for _, e := range d.Entries() {
		if daemon.IsReport(e) && e.Services > 3 { // web, marker and that of the API server
			t.Errorf("more services than are ours: %s", e.Line)
		}
	}
	saved := labtest.Run(t, r.Self.Namespace, "", "iptables-nft-save")
	for _, s := range []objects.Service{headless, foreign} {
		if strings.Contains(saved, "default/"+s.Name) {
			t.Errorf("there are rules for service %s", s.Name)
		}
	}
	if !strings.Contains(saved, "default/"+web.Name) {
		t.Error("there are no rules for service web")
	}
}

// ofAnother says that a service is another proxy's.
var ofAnother = map[string]string{"service.kubernetes.io/service-proxy-name": "another"}

// TestEndpointIsLocalByItsNodeNameAlone has addresses that say the opposite.
func TestEndpointIsLocalByItsNodeNameAlone(t *testing.T) {
	r, _ := serving(t)
	web := objects.Service{Name: "web", Number: 1, Local: true, Endpoints: []objects.Endpoint{
		{Address: r.Pods[1].IPv4(), Node: objects.Elsewhere},
		{Address: r.Remote[0].IPv4(), Node: objects.Here},
	}}
	r.create(t, web)
	r.becomes(t, web, "remote-1")
	labtest.Answers(t, r.Pods[0], "tcp", web.ClusterIP(), "remote-1")
}
