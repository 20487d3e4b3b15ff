package conntrack

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/mdlayher/netlink"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	ct "github.com/ti-mo/conntrack"
	"golang.org/x/sys/unix"
)

// tracked is the table of a namespace of its own, and ti-mo/conntrack's
// connection to it.
func tracked(t testing.TB) (table *Table, other *ct.Conn) {
	t.Helper()
	err := labtest.Namespace(t).Do(func() (err error) {
		if table, err = Dial(); err != nil {
			return err
		}
		other, err = ct.Dial(nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(table.Close(), other.Close()); err != nil {
			t.Error(err)
		}
	})
	return table, other
}

// entry is a flow from a client to a service, answered by an endpoint.
func entry(p model.Protocol, from, to, by string) ct.Flow {
	client, service, endpoint := netip.MustParseAddrPort(from), netip.MustParseAddrPort(to), netip.MustParseAddrPort(by)
	f := ct.NewFlow(uint8(p), 0, client.Addr(), service.Addr(), client.Port(), service.Port(), 120, 0)
	f.TupleReply.IP.SourceAddress, f.TupleReply.Proto.SourcePort = endpoint.Addr(), endpoint.Port()
	if p == model.TCP {
		f.ProtoInfo.TCP = &ct.ProtoInfoTCP{State: 3}
	}
	return f
}

func create(t testing.TB, c *ct.Conn, flows ...ct.Flow) {
	t.Helper()
	for _, f := range flows {
		if err := c.Create(f); err != nil {
			t.Fatalf("%v: %v", f, err)
		}
	}
}

// dumped are copies of all flows that a filter lets through.
func dumped(t testing.TB, table *Table, filter Filter) (all []Flow) {
	t.Helper()
	err := table.Dump(t.Context(), filter, func(f *Flow) bool {
		all = append(all, *f)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestDumpYieldsWhatIsThere(t *testing.T) {
	table, other := tracked(t)
	zoned := entry(model.UDP, "[fd00::9]:5000", "[fd00:96::1]:53", "[fd00:244::2]:5353")
	zoned.Zone = 7
	create(t, other, entry(model.TCP, "10.0.0.9:4000", "10.96.0.1:80", "10.244.0.2:8080"), zoned)
	flows := dumped(t, table, Filter{})
	if len(flows) != 2 {
		t.Fatalf("%d flows", len(flows))
	}
	for _, got := range flows {
		want := Flow{
			Family: model.IPv4, Protocol: model.TCP, TCPState: 3,
			Original: tuple("10.0.0.9:4000", "10.96.0.1:80"), Reply: tuple("10.244.0.2:8080", "10.0.0.9:4000"),
		}
		if got.Family == model.IPv6 {
			want = Flow{
				Family: model.IPv6, Protocol: model.UDP, Zone: 7,
				Original: tuple("[fd00::9]:5000", "[fd00:96::1]:53"), Reply: tuple("[fd00:244::2]:5353", "[fd00::9]:5000"),
			}
		}
		if got.ID == 0 || !got.Status.Confirmed() || got.Timeout < 100 || got.Timeout > 120 {
			t.Errorf("%+v: ID, status or timeout is wrong", got)
		}
		got.ID, got.Status, got.Timeout = 0, 0, 0
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func tuple(source, destination string) Tuple {
	return Tuple{netip.MustParseAddrPort(source), netip.MustParseAddrPort(destination)}
}

func TestDumpFilters(t *testing.T) {
	table, other := tracked(t)
	create(t, other,
		entry(model.TCP, "10.0.0.9:4000", "10.96.0.1:80", "10.244.0.2:8080"),
		entry(model.UDP, "10.0.0.9:4000", "10.96.0.1:80", "10.244.0.2:8080"),
		entry(model.UDP, "[fd00::9]:5000", "[fd00:96::1]:53", "[fd00:244::2]:5353"))
	for _, c := range []struct {
		filter Filter
		want   int
	}{
		{Filter{}, 3},
		{Filter{Family: model.IPv4}, 2},
		{Filter{Family: model.IPv6}, 1},
		{Filter{Protocols: []model.Protocol{model.UDP}}, 2},
		{Filter{Family: model.IPv4, Protocols: []model.Protocol{model.UDP}}, 1},
		{Filter{Protocols: []model.Protocol{model.TCP, model.UDP}}, 3},
		{Filter{Protocols: []model.Protocol{model.SCTP}}, 0},
	} {
		if got := len(dumped(t, table, c.filter)); got != c.want {
			t.Errorf("%+v: %d flows, want %d", c.filter, got, c.want)
		}
	}
}

// TestKernelFiltersByProtocol counts messages, before they are looked at.
func TestKernelFiltersByProtocol(t *testing.T) {
	table, other := tracked(t)
	create(t, other,
		entry(model.TCP, "10.0.0.9:4000", "10.96.0.1:80", "10.244.0.2:8080"),
		entry(model.UDP, "10.0.0.9:4000", "10.96.0.1:53", "10.244.0.2:5353"))
	s := table.dumps
	if err := s.send(ctGet, netlink.Dump, model.IPv4, filterAttributes(model.UDP)); err != nil {
		t.Fatal(err)
	}
	sent := 0
	for done := false; !done; {
		b, err := s.receive()
		if err != nil {
			t.Fatal(err)
		}
		for m := range messages(b) {
			if done = m.kind == netlink.Done; !done {
				sent++
			}
		}
	}
	if sent != 1 {
		t.Errorf("the kernel sent %d flows, want 1", sent)
	}
}

func TestDumpCanBeStoppedAndBegunAgain(t *testing.T) {
	table, other := tracked(t)
	const flows = 1000 // more than fit into one part
	for i := range flows {
		create(t, other, entry(model.UDP, netip.AddrPortFrom(netip.MustParseAddr("10.0.0.9"), uint16(1000+i)).String(), "10.96.0.1:53", "10.244.0.2:53"))
	}
	seen := 0
	if err := table.Dump(t.Context(), Filter{}, func(*Flow) bool { seen++; return seen < 3 }); err != nil || seen != 3 {
		t.Errorf("%d flows after the third, %v", seen, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	seen = 0
	err := table.Dump(ctx, Filter{}, func(*Flow) bool { seen++; cancel(); return true })
	if !errors.Is(err, context.Canceled) || seen == flows {
		t.Errorf("%d flows in a dump that was cancelled, %v", seen, err)
	}
	if got := len(dumped(t, table, Filter{})); got != flows {
		t.Errorf("%d flows in the next dump, want %d", got, flows)
	}
}

func TestDeleteTakesOneFlowDuringADump(t *testing.T) {
	table, other := tracked(t)
	stays := entry(model.UDP, "10.0.0.9:4001", "10.96.0.1:53", "10.244.0.2:53")
	goes := stays
	goes.Zone = 5
	create(t, other, stays, goes)
	err := table.Dump(t.Context(), Filter{}, func(f *Flow) bool {
		if f.Zone == 5 {
			if err := table.Delete(f); err != nil {
				t.Error(err)
			}
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if left := dumped(t, table, Filter{}); len(left) != 1 || left[0].Zone != 0 {
		t.Errorf("left are %v", left)
	}
}

func TestDeleteSparesAnotherFlowOfTheSameTuple(t *testing.T) {
	table, other := tracked(t)
	create(t, other, entry(model.UDP, "10.0.0.9:4001", "10.96.0.1:53", "10.244.0.2:53"))
	f := dumped(t, table, Filter{})[0]
	f.ID ^= 1
	if err := table.Delete(&f); err != nil {
		t.Errorf("a flow that is gone: %v", err)
	}
	if left := dumped(t, table, Filter{}); len(left) != 1 {
		t.Error("the flow with the other ID is deleted")
	}
	f.ID ^= 1
	if err := table.Delete(&f); err != nil {
		t.Error(err)
	}
	if left := dumped(t, table, Filter{}); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

func TestErrorsNameWhatFailed(t *testing.T) {
	table, err := Dial()
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	f := &Flow{Family: model.IPv4, Protocol: model.UDP, Original: tuple("10.0.0.9:1", "10.96.0.1:53")}
	if err := table.Delete(f); err == nil || !strings.Contains(err.Error(), "udp 10.0.0.9:1 -> 10.96.0.1:53") {
		t.Errorf("deletion in a closed table: %v", err)
	}
	if err := table.Dump(t.Context(), Filter{}, func(*Flow) bool { return true }); err == nil {
		t.Error("dump of a closed table: no error")
	}
}

// reply is a datagram of a dump with one message.
func reply(kind netlink.HeaderType, flags netlink.HeaderFlags, errno int32) []byte {
	data := make([]byte, 4)
	for i := range data {
		data[i] = byte(uint32(-errno) >> (8 * i))
	}
	m := netlink.Message{Header: netlink.Header{Length: 20, Type: kind, Flags: flags, Sequence: 1}, Data: data}
	b, _ := m.MarshalBinary()
	return b
}

func TestInterruptedDumpIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		reply []byte
		want  error
	}{
		"whole":                   {reply(netlink.Done, netlink.Multi, 0), nil},
		"flagged":                 {reply(netlink.Done, netlink.Multi|netlink.DumpInterrupted, 0), ErrInterrupted},
		"interrupted by a signal": {reply(netlink.Done, netlink.Multi, int32(unix.EINTR)), ErrInterrupted},
		"refused":                 {reply(netlink.Error, 0, int32(unix.EPERM)), unix.EPERM},
	} {
		d := dump{sequence: 1}
		d.take(c.reply)
		if err := d.err(); !d.done || !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: done %v, %v, want %v", name, d.done, err, c.want)
		}
	}
}

func FuzzDatagram(f *testing.F) {
	f.Add(reply(netlink.Done, netlink.Multi, 0))
	f.Add(reply(256, netlink.Multi, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := dump{sequence: 1, filter: Filter{Protocols: []model.Protocol{model.UDP}}}
		d.yield = func(flow *Flow) bool {
			if flow.Protocol != model.UDP || !flow.Reply.Source.IsValid() {
				t.Errorf("yields %+v", flow)
			}
			return true
		}
		d.take(b)
	})
}

// recorded is a message of a dump with a flow as the kernel sends it.
func recorded(b *testing.B) netlink.Message {
	b.Helper()
	table, other := tracked(b)
	create(b, other, entry(model.UDP, "10.0.0.9:4001", "10.96.0.1:53", "10.244.0.2:53"))
	if err := table.dumps.send(ctGet, netlink.Dump, 0, nil); err != nil {
		b.Fatal(err)
	}
	part, err := table.dumps.receive()
	if err != nil {
		b.Fatal(err)
	}
	for m := range messages(part) {
		return netlink.Message{Header: netlink.Header{Type: m.kind, Flags: m.flags}, Data: m.payload}
	}
	b.Fatal("no message")
	return netlink.Message{}
}

func BenchmarkDecode(b *testing.B) {
	b.Run("here", func(b *testing.B) {
		m := recorded(b)
		var f Flow
		b.ReportAllocs()
		for b.Loop() {
			if !f.decode(m.Data) {
				b.Fatal("no flow")
			}
		}
	})
	b.Run("ti-mo", func(b *testing.B) {
		m := recorded(b)
		b.ReportAllocs()
		for b.Loop() {
			var e ct.Event
			if err := e.Unmarshal(m); err != nil {
				b.Fatal(err)
			}
		}
	})
}
