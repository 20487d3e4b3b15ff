package traffic

import (
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/integration/lab"
)

// The flags of a TCP header (RFC 9293, 3.1).
const (
	fin = 1 << 0
	ack = 1 << 4
)

// segment is a TCP header with a checksum.
func segment(from, to netip.AddrPort, flags byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, from.Port())
	b = binary.BigEndian.AppendUint16(b, to.Port())
	b = binary.BigEndian.AppendUint32(b, 1000) // sequence number
	b = binary.BigEndian.AppendUint32(b, 2000) // acknowledged
	b = append(b, 5<<4, flags, 255, 255, 0, 0, 0, 0)
	pseudo := append(from.Addr().AsSlice(), to.Addr().AsSlice()...)
	pseudo = append(pseudo, 0, unix.IPPROTO_TCP, 0, byte(len(b)))
	binary.BigEndian.PutUint16(b[16:], checksum(append(pseudo, b...)))
	return b
}

// checksum is that of RFC 1071, over an even number of bytes.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// raw is a socket that sends and receives TCP segments at a place.
func raw(t *testing.T, p *lab.Place, v6 bool) net.PacketConn {
	t.Helper()
	network, a := "ip4:tcp", p.IPv4()
	if v6 {
		network, a = "ip6:tcp", p.IPv6()
	}
	conn, err := p.Namespace.ListenPacket(network, a.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// stray sends a segment that belongs to no connection from outside to pod-1,
// and reports whether it arrives before the connection that follows it.
func (p *proxy) stray(t *testing.T, flags byte, v6 bool) (arrives bool) {
	t.Helper()
	from, to := netip.AddrPortFrom(p.Outside.IPv4(), 999), netip.AddrPortFrom(p.Pods[0].IPv4(), targetPort)
	if v6 {
		from, to = netip.AddrPortFrom(p.Outside.IPv6(), 999), netip.AddrPortFrom(p.Pods[0].IPv6(), targetPort)
	}
	receiver := raw(t, p.Pods[0], v6)
	defer receiver.Close()
	sender := raw(t, p.Outside, v6)
	defer sender.Close()
	if _, err := sender.WriteTo(segment(from, to, flags), &net.IPAddr{IP: to.Addr().AsSlice()}); err != nil {
		t.Fatal(err)
	}
	conn, outcome := p.Outside.Connect("tcp", to, lab.DialOptions{})
	if conn == nil {
		t.Fatal(outcome)
	}
	defer conn.Close()
	if err := receiver.SetReadDeadline(time.Now().Add(deadline)); err != nil {
		t.Fatal(err)
	}
	for b := make([]byte, 1500); ; {
		n, _, err := receiver.ReadFrom(b)
		if err != nil || n < 2 {
			t.Fatalf("%d bytes, %v; no packet of the connection from %s", n, err, conn.Local())
		}
		switch binary.BigEndian.Uint16(b) {
		case from.Port():
			arrives = true
		case conn.Local().Port():
			return arrives
		}
	}
}

func TestPacketsOfNoConnectionAreDroppedAndCounted(t *testing.T) {
	t.Parallel()
	p := newProxy(t, settings())
	counted := func() uint64 {
		packets, _, err := p.conn.Counter(iptables.InvalidDropped)
		if err != nil {
			t.Fatal(err)
		}
		return packets
	}
	for _, drop := range []bool{true, false} {
		p.options.Plan.DropInvalid = drop
		p.start(t)
		p.set(t)
		for _, v6 := range []bool{false, true} {
			for _, c := range []struct {
				name  string
				flags byte
				loose string
			}{
				{"the end of a stream", fin | ack, "1"},
				{"the middle of a stream, which may not be picked up", ack, "0"},
			} {
				if err := p.write("net/netfilter/nf_conntrack_tcp_loose", c.loose); err != nil {
					t.Fatal(err)
				}
				before, want := counted(), uint64(0)
				if drop {
					want = 1
				}
				if arrives, more := p.stray(t, c.flags, v6), counted()-before; arrives == drop || more != want {
					t.Errorf("%s, IPv6 %v, to be dropped %v: arrives %v, %d counted", c.name, v6, drop, arrives, more)
				}
			}
		}
	}
}
