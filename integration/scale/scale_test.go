package scale

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { labtest.Main(m) }

var options = plan.Options{
	MasqueradeBit: 14,
	Detect: plan.Detect{
		Mode:         plan.DetectClusterCIDR,
		ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/9")},
	},
	DropInvalid: true,
}

var port = model.PortKey{Port: "http", Protocol: model.TCP}

// cluster has n services of so many endpoints each.
func cluster(services, endpoints int) model.Snapshot {
	all := make(map[model.Name]*model.Service, services)
	for i := range services {
		svc := service(i, endpoints)
		all[svc.Name] = svc
	}
	node := model.Node{Name: "node1", Addresses: []netip.Addr{netip.MustParseAddr("192.168.7.1")}}
	return model.Snapshot{Node: node, Services: model.Services{}.With(all)}
}

func service(i, endpoints int) *model.Service {
	svc := &model.Service{
		Name:       model.Name{Namespace: "default", Name: fmt.Sprintf("service-%d", i)},
		Ports:      []model.Port{{PortKey: port, Number: 80}},
		ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 240, byte(i >> 8), byte(i)})},
	}
	eps := make([]model.Endpoint, endpoints)
	for e := range eps {
		n := i*endpoints + e
		eps[e] = endpoint(n)
	}
	svc.Endpoints = map[model.PortKey][]model.Endpoint{port: eps}
	return svc
}

func endpoint(n int) model.Endpoint {
	a := netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
	return model.Endpoint{Addr: netip.AddrPortFrom(a, 8080), Ready: true, Serving: true, Node: "node2"}
}

// replace gives a service's last endpoint another address.
func replace(s model.Snapshot, i, round int) model.Snapshot {
	old := s.Services.Get(model.Name{Namespace: "default", Name: fmt.Sprintf("service-%d", i)})
	svc := *old
	changed := append([]model.Endpoint(nil), old.Endpoints[port]...)
	changed[len(changed)-1] = endpoint(1<<22 + round)
	svc.Endpoints = map[model.PortKey][]model.Endpoint{port: changed}
	s.Services = s.Services.With(map[model.Name]*model.Service{svc.Name: &svc})
	s.Changed = map[model.Name]struct{}{svc.Name: {}}
	return s
}

// rig is a dataplane in a namespace of its own that keeps what it sends.
type rig struct {
	dataplane *dataplane.Dataplane
	sent      [][]byte
}

func newRig(b *testing.B) *rig {
	b.Helper()
	r := &rig{}
	var conn *kernel.Conn
	err := labtest.Namespace(b).Do(func() (err error) {
		conn, err = kernel.Dial(kernel.Options{Tap: func(batch []byte) {
			r.sent = append(r.sent, bytes.Clone(batch))
		}})
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	r.dataplane, err = dataplane.New(dataplane.Options{Reader: conn, Writer: conn, Plan: options})
	if err != nil {
		b.Fatal(err)
	}
	return r
}

func (r *rig) set(b *testing.B, s model.Snapshot) time.Duration {
	b.Helper()
	start := time.Now()
	if err := r.dataplane.Set(b.Context(), s); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// alone is a bare socket in a namespace of its own.
type alone struct{ fd int }

func newAlone(b *testing.B) alone {
	b.Helper()
	var a alone
	err := labtest.Namespace(b).Do(func() (err error) {
		a.fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { unix.Close(a.fd) })
	return a
}

// send gives the kernel recorded transactions and returns how long it took.
func (a alone) send(b *testing.B, batches [][]byte) (took time.Duration) {
	b.Helper()
	for _, batch := range batches {
		if unix.SetsockoptInt(a.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, len(batch)) != nil {
			if err := unix.SetsockoptInt(a.fd, unix.SOL_SOCKET, unix.SO_SNDBUF, len(batch)); err != nil {
				b.Fatal(err)
			}
		}
		start := time.Now()
		err := unix.Sendto(a.fd, batch, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
		took += time.Since(start)
		if err := errors.Join(err, a.answer()); err != nil {
			b.Fatal(err)
		}
	}
	return took
}

// answer reads the kernel's replies, of which none may be an error.
func (a alone) answer() error {
	buf := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(a.fd, buf, unix.MSG_DONTWAIT)
		switch {
		case err == unix.EAGAIN:
			return nil
		case err == unix.ENOBUFS:
		case err != nil:
			return err
		case n >= 20 && buf[4] == unix.NLMSG_ERROR && buf[16]|buf[17]|buf[18]|buf[19] != 0:
			return fmt.Errorf("the kernel refuses the recorded bytes: errno %d", -int32(buf[16]|buf[17])-1)
		}
	}
}

func BenchmarkFirstLoad(b *testing.B) {
	for _, size := range [][2]int{{1_000, 5}, {10_000, 5}} {
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			if testing.Short() && size[0] > 1_000 {
				b.Skip("takes a minute")
			}
			s := cluster(size[0], size[1])
			var ours, kernels time.Duration
			var sent [][]byte
			for b.Loop() {
				r := newRig(b)
				ours += r.set(b, s)
				kernels += newAlone(b).send(b, r.sent)
				sent = r.sent
			}
			report(b, ours, kernels)
			b.ReportMetric(float64(len(sent)), "transactions")
			b.ReportMetric(float64(len(bytes.Join(sent, nil)))/1e6, "MB")
		})
	}
}

func BenchmarkOneEndpointChanges(b *testing.B) {
	for _, size := range [][2]int{{1_000, 5}, {10_000, 5}} {
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			if testing.Short() && size[0] > 1_000 {
				b.Skip("takes a minute")
			}
			s := cluster(size[0], size[1])
			r, bare := newRig(b), newAlone(b)
			r.set(b, s)
			bare.send(b, r.sent)
			var ours, kernels time.Duration
			round := 0
			for b.Loop() {
				r.sent = nil
				s = replace(s, round%size[0], round)
				ours += r.set(b, s)
				kernels += bare.send(b, r.sent)
				round++
			}
			report(b, ours, kernels)
			b.ReportMetric(float64(len(r.sent)), "transactions")
		})
	}
}

// report gives both times per run, and how many times the kernel's ours is.
func report(b *testing.B, ours, kernels time.Duration) {
	b.Helper()
	b.ReportMetric(float64(ours.Microseconds())/float64(b.N)/1e3, "ours-ms")
	b.ReportMetric(float64(kernels.Microseconds())/float64(b.N)/1e3, "kernel-ms")
	b.ReportMetric(float64(ours)/float64(kernels), "ratio")
}
