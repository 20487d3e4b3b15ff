package leftovers_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/leftovers"
)

// addDevice makes kube-ipvs0 with addresses. Integration/kernels runs these
// tests on kernels that have dummy devices and IPVS.
func (n node) addDevice(addresses ...string) {
	n.t.Helper()
	n.do(func() error {
		device := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "kube-ipvs0"}}
		if err := netlink.LinkAdd(device); err == unix.EOPNOTSUPP {
			n.t.Skip("the kernel has no dummy devices")
		} else if err != nil {
			return err
		}
		for _, a := range addresses {
			address, err := netlink.ParseAddr(a)
			if err != nil {
				return err
			}
			if err := netlink.AddrAdd(device, address); err != nil {
				return err
			}
		}
		return nil
	})
}

func (n node) addServers(servers ...leftovers.Server) {
	n.t.Helper()
	n.do(func() error {
		ok, err := leftovers.AddServers(servers...)
		if err == nil && !ok {
			n.t.Skip("the kernel has no IPVS")
		}
		return err
	})
}

func (n node) wantServers(want ...string) {
	n.t.Helper()
	n.do(func() error {
		got, err := leftovers.Servers()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			n.t.Errorf("virtual servers %q, want %q", got, want)
		}
		return err
	})
}

func TestVirtualServersOfKubeProxyGoAndThoseOfOthersStay(t *testing.T) {
	n := newNode(t)
	n.addDevice("10.96.0.1/32", "fd00:96::1/128")
	n.makeSets(map[string]string{"KUBE-NODE-PORT-TCP": "bitmap:port", "KUBE-6-NODE-PORT-UDP": "bitmap:port"})
	n.addServers(
		leftovers.Server{Address: "10.96.0.1:80", Protocol: unix.IPPROTO_TCP},
		leftovers.Server{Address: "10.96.0.1:99", Protocol: unix.IPPROTO_SCTP},
		leftovers.Server{Address: "[fd00:96::1]:53", Protocol: unix.IPPROTO_UDP},
		leftovers.Server{Address: "192.168.7.1:30080", Protocol: unix.IPPROTO_TCP},
		leftovers.Server{Address: "[fd00:7::1]:30053", Protocol: unix.IPPROTO_UDP},
		leftovers.Server{Address: "192.168.7.1:443", Protocol: unix.IPPROTO_TCP},
		leftovers.Server{Address: "192.168.7.1:30080", Protocol: unix.IPPROTO_UDP},
		leftovers.Server{Mark: 5},
	)
	n.do(func() error { return leftovers.AddPorts("KUBE-NODE-PORT-TCP", 30080) })
	n.do(func() error { return leftovers.AddPorts("KUBE-6-NODE-PORT-UDP", 30053) })
	found := n.remove()
	slices.Sort(found)
	want := []string{
		"device kube-ipvs0", "ipset KUBE-6-NODE-PORT-UDP", "ipset KUBE-NODE-PORT-TCP",
		"ipvs virtual server 10.96.0.1:80/TCP", "ipvs virtual server 10.96.0.1:99/SCTP",
		"ipvs virtual server 192.168.7.1:30080/TCP", "ipvs virtual server [fd00:7::1]:30053/UDP",
		"ipvs virtual server [fd00:96::1]:53/UDP",
	}
	if !slices.Equal(found, want) {
		t.Errorf("removed %q, want %q", found, want)
	}
	n.wantServers("192.168.7.1:30080/UDP", "192.168.7.1:443/TCP", "mark 5")
	n.wantRemoved()
}

func TestVirtualServersWithoutKubeProxyAreNotLookedFor(t *testing.T) {
	n := newNode(t)
	n.addServers(leftovers.Server{Address: "10.96.0.1:80", Protocol: unix.IPPROTO_TCP})
	n.wantRemoved()
	n.wantServers("10.96.0.1:80/TCP")
}

func TestDeviceGoesAlone(t *testing.T) {
	n := newNode(t)
	n.addDevice("10.96.0.1/32")
	n.wantRemoved("device kube-ipvs0")
}

func TestDeviceOfAnotherTypeStays(t *testing.T) {
	n := newNode(t)
	n.makeSets(map[string]string{"KUBE-CLUSTER-IP": "hash:ip,port"})
	n.do(func() error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "kube-ipvs0"}, PeerName: "peer"})
	})
	n.do(func() error {
		found, err := leftovers.Remove(t.Context(), leftovers.Options{Kernel: n.Conn})
		if err == nil || !strings.HasSuffix(err.Error(), "device kube-ipvs0 is of type veth, not dummy") {
			t.Errorf("%v, want the type of the device", err)
		}
		if len(found) != 2 || found[0].Kept == nil || found[1].Kept != nil {
			t.Errorf("%v, want the device kept and the set gone", found)
		}
		_, err = netlink.LinkByName("kube-ipvs0")
		return err
	})
}

// It has to be the first to look: others load what they need.
func TestLookingLoadsNoModule(t *testing.T) {
	before, err := os.ReadFile("/proc/modules")
	if err != nil || strings.Contains(string(before), "ip_vs ") || strings.Contains(string(before), "ip_set ") {
		t.Skip("the kernel has no modules, or these are loaded")
	}
	n := newNode(t)
	n.addDevice("10.96.0.1/32")
	n.wantRemoved("device kube-ipvs0")
	after, err := os.ReadFile("/proc/modules")
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range []string{"ip_vs", "ip_set", "ip_tables", "iptable_nat"} {
		if strings.Contains("\n"+string(after), "\n"+module+" ") {
			t.Errorf("%s has been loaded", module)
		}
	}
}
