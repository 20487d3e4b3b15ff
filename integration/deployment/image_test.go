package deployment

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kube-proxy/config/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
)

func TestImageHoldsTheBinaryUnderBothNamesAndNothingElse(t *testing.T) {
	image := daemon.TheImage(t)
	want := []string{"/usr/local/bin/kube-proxy", "/usr/local/bin/nlproxy"}
	if got := image.Files(t); !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
	if !slices.Equal(image.Entrypoint, want[1:]) {
		t.Errorf("entrypoint %q", image.Entrypoint)
	}
	if link, err := os.Readlink(filepath.Join(image.Root, want[0])); err != nil || link != "nlproxy" {
		t.Errorf("%s leads to %q, %v", want[0], link, err)
	}
}

// web is a service of the rig's pods.
func (r *rig) web() objects.Service {
	return objects.Service{Name: "web", Number: 1, Type: corev1.ServiceTypeNodePort, Endpoints: objects.At(r.Pods[1], r.Remote[0])}
}

// serves fails t unless a pod and the outside reach web.
func (r *rig) serves(t *testing.T) {
	t.Helper()
	web := r.web()
	labtest.Becomes(t, r.Pods[0], "tcp", web.ClusterIP(), labtest.By("pod-2", "remote-1"))
	labtest.Answers(t, r.Pods[0], "tcp", web.ClusterIP(), "pod-2", "remote-1")
	labtest.Answers(t, r.Outside, "tcp", web.NodePort(r.Self.IPv4()), "pod-2", "remote-1")
}

// shipped are the flags for objects that fit this rig.
func shipped(more ...string) []string {
	return append([]string{"--server=" + server, "--cluster-cidr=10.244.0.0/16,fd00:244::/32"}, more...)
}

// TestServesAsItsDaemonSetRunsIt has no /etc, nothing to write, and the rights
// of the shipped role.
func TestServesAsItsDaemonSetRunsIt(t *testing.T) {
	r := newRig(t)
	r.Create(t, []byte(objects.Documents(t, r.web())))
	all := decoded(t, manifest(t, shipped()...))
	r.apply(t, all)
	c := newContainer(t, r.volumes(t, one[*corev1.ConfigMap](t, all)), false)
	ran := c.start(t, r.Self.Namespace, command(one[*appsv1.DaemonSet](t, all).Spec.Template.Spec.Containers[0]))
	ran.checkRights(t)
	r.serves(t)
	r.probed(t, one[*appsv1.DaemonSet](t, all))
	ran.stop(t)
	ran.checkNothingMissing(t)
}

// checkNothingMissing fails t if the log tells of something that is forbidden.
func (r *running) checkNothingMissing(t *testing.T) {
	t.Helper()
	for _, word := range []string{"orbidden", "read-only", "ermission denied", "not permitted"} {
		if strings.Contains(r.log.String(), word) {
			t.Errorf("something is %q:\n%s", word, &r.log)
		}
	}
}

// TestInitContainerSetsWhatTheOtherCannot runs both with kube-proxy's defaults.
func TestInitContainerSetsWhatTheOtherCannot(t *testing.T) {
	r := newRig(t)
	r.Create(t, []byte(objects.Documents(t, r.web())))
	all := decoded(t, manifest(t, shipped("--with-init")...))
	r.apply(t, all)
	pod, volumes := one[*appsv1.DaemonSet](t, all).Spec.Template.Spec, r.volumes(t, one[*corev1.ConfigMap](t, all))
	prepare := newContainer(t, volumes, true).cmd(command(pod.InitContainers[0]))
	var out []byte
	err := r.Self.Namespace.Do(func() (err error) {
		out, err = prepare.CombinedOutput()
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v\n%s", prepare, err, out)
	}
	r.isSet(t, "net/netfilter/nf_conntrack_tcp_timeout_established", "86400")
	r.isSet(t, "net/ipv4/conf/all/route_localnet", "1")

	ran := newContainer(t, volumes, false).start(t, r.Self.Namespace, command(pod.Containers[0]))
	r.serves(t)
	local := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), r.web().NodePort(r.Self.IPv4()).Port())
	labtest.Answers(t, r.Self, "tcp", local, "pod-2", "remote-1")
	ran.stop(t)
	ran.checkNothingMissing(t)
}

// probed fails t unless both probes of the container succeed.
func (r *rig) probed(t *testing.T, d *appsv1.DaemonSet) {
	t.Helper()
	c := d.Spec.Template.Spec.Containers[0]
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
		url := "http://" + r.Self.IPv4().String() + ":" + probe.HTTPGet.Port.String() + probe.HTTPGet.Path
		if got := labtest.Get(t, r.Self.Namespace, url); got.Status != 200 {
			t.Errorf("%s: status %d, %s", url, got.Status, got.Body)
		}
	}
}

// kubeadmCommand is that of kubeadm's DaemonSet
// (cmd/kubeadm/app/phases/addons/proxy/manifests.go, Kubernetes 1.37).
var kubeadmCommand = []string{
	"/usr/local/bin/kube-proxy",
	"--config=/var/lib/kube-proxy/config.conf",
	"--hostname-override=" + objects.Here,
}

// kubeadmConfiguration is as kubeadm writes it: each field is there, and most
// are empty.
func kubeadmConfiguration(t *testing.T) string {
	t.Helper()
	var c v1alpha1.KubeProxyConfiguration
	c.APIVersion, c.Kind = v1alpha1.SchemeGroupVersion.String(), "KubeProxyConfiguration"
	c.BindAddress = "0.0.0.0"
	c.ClientConnection.Kubeconfig = "/var/lib/kube-proxy/kubeconfig.conf"
	c.ClusterCIDR = "10.244.0.0/16,fd00:244::/32"
	text, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestServesInPlaceOfKubeProxysImage changes nothing of kubeadm's objects but
// the image.
func TestServesInPlaceOfKubeProxysImage(t *testing.T) {
	r := newRig(t)
	r.Create(t, []byte(objects.Documents(t, r.web())))
	all := decoded(t, manifest(t, shipped()...))
	r.apply(t, all)
	settings := one[*corev1.ConfigMap](t, all)
	settings.Data["config.conf"] = kubeadmConfiguration(t)
	ran := newContainer(t, r.volumes(t, settings), false).start(t, r.Self.Namespace, kubeadmCommand)
	r.serves(t)
	r.probed(t, one[*appsv1.DaemonSet](t, all))
	ran.stop(t)
}
