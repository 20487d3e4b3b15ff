package conntrack

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/sysctl"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

// namespaced are the settings that each network namespace has for itself.
var namespaced = []string{tcpEstablishedTimeout, tcpCloseWaitTimeout, tcpBeLiberal, udpTimeout, udpStreamTimeout}

// inside calls fn in ns.
func inside(t *testing.T, ns *lab.Namespace, fn func()) {
	t.Helper()
	if err := ns.Do(func() error { fn(); return nil }); err != nil {
		t.Fatal(err)
	}
}

// kernel returns the kernel's values in ns.
func kernel(t *testing.T, ns *lab.Namespace, names ...string) map[string]string {
	t.Helper()
	got := make(map[string]string, len(names))
	inside(t, ns, func() {
		for _, name := range names {
			value, err := sysctl.Tree{}.Read(name)
			if err != nil {
				t.Error(err)
			}
			got[name] = value
		}
	})
	return got
}

// current returns the value of a limit of the kernel.
func current(t *testing.T, name string) int {
	t.Helper()
	n, err := strconv.Atoi(kernel(t, labtest.Current(t), name)[name])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTimeoutsAreThoseOfTheNamespace(t *testing.T) {
	ours, other := labtest.Namespace(t), labtest.Namespace(t)
	before := kernel(t, other, namespaced...)
	a, logs := applier(t, Limits{TCPBeLiberal: true, TCPEstablishedTimeout: 86401 * time.Second, TCPCloseWaitTimeout: 3601 * time.Second,
		UDPTimeout: 31*time.Second + time.Millisecond, UDPStreamTimeout: 121 * time.Second}, nil, nil)
	inside(t, ours, a.Apply)
	want := map[string]string{tcpEstablishedTimeout: "86401", tcpCloseWaitTimeout: "3601", tcpBeLiberal: "1", udpTimeout: "32", udpStreamTimeout: "121"}
	if diff := cmp.Diff(want, kernel(t, ours, namespaced...)); diff != "" {
		t.Errorf("here, -want +got:\n%s", diff)
	}
	for name, ns := range map[string]*lab.Namespace{"other": other, "that of the process": labtest.Current(t)} {
		if diff := cmp.Diff(before, kernel(t, ns, namespaced...)); diff != "" {
			t.Errorf("namespace %s, -before +after:\n%s", name, diff)
		}
	}
	wantUnwritable(t, a)
	if got := len(warnings(logs)); got != 0 {
		t.Errorf("warned: %v", warnings(logs))
	}
}

// nf_conntrack_standalone_init_sysctl (nf_conntrack_standalone.c, Linux 6.18)
// registers the settings with the namespace, whether or not a rule uses
// connection tracking there; what can be absent is the whole module.
func TestNamespaceHasTheSettingsBeforeItHasRules(t *testing.T) {
	inside(t, labtest.Namespace(t), func() {
		for _, name := range append(namespaced, tableMax, buckets) {
			if _, err := (sysctl.Tree{}).Read(name); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestLimitOfTheNodeIsForbiddenToOtherNamespaces(t *testing.T) {
	now, hash := current(t, tableMax), current(t, buckets)
	wanted := now + 1
	a, logs := applier(t, Limits{MaxPerCore: wanted, UDPTimeout: 33 * time.Second}, nil, nil)
	ns := labtest.Namespace(t)
	for range 2 {
		inside(t, ns, a.Apply)
	}
	want := []Unwritable{{Setting: tableMax, Wanted: int64(wanted), Current: strconv.Itoa(now), Reason: Forbidden}}
	if wanted/flowsPerBucket > hash {
		want = append([]Unwritable{{Setting: buckets, Wanted: int64(wanted / flowsPerBucket), Current: strconv.Itoa(hash), Reason: Forbidden}}, want...)
	}
	wantUnwritable(t, a, want...)
	if got := len(warnings(logs)); got != len(want) {
		t.Errorf("%d warnings, want %d: %v", got, len(want), warnings(logs))
	}
	if got := kernel(t, ns, udpTimeout)[udpTimeout]; got != "33" {
		t.Errorf("udp timeout %s, want 33", got)
	}
}

// Neither way to the hash table is open in a namespace other than the first
// (nf_conntrack_set_hashsize, nf_conntrack_core.c, Linux 6.18).
func TestHashTableOfTheNodeIsForbiddenToOtherNamespaces(t *testing.T) {
	hash := current(t, buckets)
	wanted := (hash + 1) * flowsPerBucket
	a, _ := applier(t, Limits{MaxPerCore: wanted}, nil, nil)
	a.Apply()
	for _, u := range a.Unwritable() {
		if u.Setting == buckets {
			if want := (Unwritable{Setting: buckets, Wanted: int64(hash + 1), Current: strconv.Itoa(hash), Reason: Forbidden}); u != want {
				t.Errorf("%+v, want %+v", u, want)
			}
			return
		}
	}
	t.Errorf("not among %+v", a.Unwritable())
}

func TestKernelRefusesATimeoutThatItCannotCount(t *testing.T) {
	ns := labtest.Namespace(t)
	before := kernel(t, ns, udpTimeout)[udpTimeout]
	a, logs := applier(t, Limits{UDPTimeout: 100 * 365 * 24 * time.Hour, UDPStreamTimeout: 34 * time.Second}, nil, nil)
	inside(t, ns, a.Apply)
	wantUnwritable(t, a, Unwritable{Setting: udpTimeout, Wanted: 3153600000, Current: before, Reason: Refused})
	if got := len(warnings(logs)); got != 1 {
		t.Errorf("%d warnings, want 1", got)
	}
	if got := kernel(t, ns, udpStreamTimeout)[udpStreamTimeout]; got != "34" {
		t.Errorf("the other timeout is %s, want 34", got)
	}
}

// dropAllBut leaves the calling thread no capability but one.
func dropAllBut(capability int) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	bit := uint32(1) << (capability % 32)
	data[capability/32] = unix.CapUserData{Effective: bit, Permitted: bit}
	return unix.Capset(&header, &data[0])
}

// asContainer calls fn as a container without privileges does: CAP_NET_ADMIN
// alone, and /proc/sys read-only if readOnly says so.
func asContainer(t *testing.T, readOnly bool, fn func()) {
	t.Helper()
	// What is changed here is the thread's own, and ends with it.
	inside(t, labtest.Namespace(t), func() {
		err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		if err == nil && readOnly {
			err = mountReadOnly("/proc/sys")
		}
		if err == nil {
			err = dropAllBut(unix.CAP_NET_ADMIN)
		}
		if err != nil {
			t.Error(err)
			return
		}
		fn()
	})
}

func TestNetAdminAloneSetsTimeouts(t *testing.T) {
	asContainer(t, false, func() {
		a, _ := applier(t, Limits{UDPTimeout: 35 * time.Second}, nil, nil)
		a.Apply()
		wantUnwritable(t, a)
		if got, err := (sysctl.Tree{}).Read(udpTimeout); got != "35" || err != nil {
			t.Errorf("udp timeout %s, %v; want 35", got, err)
		}
	})
}

func TestReadOnlySysctlsCostOnlyWhatDiffers(t *testing.T) {
	asContainer(t, true, func() {
		a, logs := applier(t, Limits{MaxPerCore: 1, UDPTimeout: 30 * time.Second, UDPStreamTimeout: 121 * time.Second}, nil, nil)
		for range 2 {
			a.Apply()
		}
		wantUnwritable(t, a, Unwritable{Setting: udpStreamTimeout, Wanted: 121, Current: "120", Reason: ReadOnly})
		if got := len(warnings(logs)); got != 1 {
			t.Errorf("%d warnings, want 1: %v", got, warnings(logs))
		}
	})
}
