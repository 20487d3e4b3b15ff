package traffic

import (
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/plan"
)

// The addresses of the node on which node ports may be. There is no second one
// of IPv6, so that the first has its place.
var (
	onLoopback = nodePortOn("127.0.0.1", "::1")
	onSecond   = nodePortOn("192.168.8.1", "fd00:7::1")
	onVIP      = nodePortOn("192.168.7.50", "fd00:7::50")
)

func TestNodePortsAreOnTheAddressesThatAreWanted(t *testing.T) {
	t.Parallel()
	s := service{name: "node", number: 1, kind: "NodePort", endpoints: at("pod-1")}
	yes, no := masqueraded("pod-1"), refused()
	prefixes := func(list ...string) []netip.Prefix {
		var all []netip.Prefix
		for _, p := range list {
			all = append(all, netip.MustParsePrefix(p))
		}
		return all
	}
	for _, c := range []struct {
		name  string
		ports plan.NodePorts
		// of IPv4 at each address, and at the last one once it is known
		loopback, first, second, vip, known want
		// of IPv6 there, but for loopback, where nothing is ever served
		first6, vip6, known6 want
	}{
		{"all", plan.NodePorts{Localhost: true},
			yes, yes, yes, yes, yes, yes, yes, yes},
		{"all but loopback", plan.NodePorts{},
			no, yes, yes, yes, yes, yes, yes, yes},
		{"a range", plan.NodePorts{Localhost: true, Prefixes: prefixes("192.168.7.0/24")},
			no, yes, no, no, yes, yes, yes, yes},
		{"a range of each family", plan.NodePorts{Localhost: true, Prefixes: prefixes("192.168.7.0/24", "fd00:7::50/128")},
			no, yes, no, no, yes, no, no, yes},
		{"loopback", plan.NodePorts{Localhost: true, Prefixes: prefixes("127.0.0.0/8")},
			yes, no, no, no, no, yes, yes, yes},
		{"loopback, which is off", plan.NodePorts{Prefixes: prefixes("127.0.0.0/8")},
			no, no, no, no, no, yes, yes, yes},
		{"primary", plan.NodePorts{Localhost: true, Primary: true},
			no, yes, no, no, no, yes, no, no},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := settings()
			o.NodePorts = c.ports
			p := newProxy(t, o)
			p.set(t, s)
			p.own(t, "vip", netip.MustParseAddr("192.168.7.50"), netip.MustParseAddr("fd00:7::50"))
			p.check(t, []row{
				{from: "node", to: s, by: onLoopback, want: c.loopback, only: "IPv4"},
				{from: "node", to: s, by: onLoopback, want: no, only: "IPv6"},
				{from: "node", to: s, by: nodePort, want: c.first, only: "IPv4"},
				{from: "outside", to: s, by: nodePort, want: c.first, only: "IPv4"},
				{from: "node", to: s, by: nodePort, want: c.first6, only: "IPv6"},
				{from: "outside", to: s, by: nodePort, want: c.first6, only: "IPv6"},
				{from: "node", to: s, by: onSecond, want: c.second, only: "IPv4"},
				{from: "outside", to: s, by: onSecond, want: c.second, only: "IPv4"},
				{from: "outside", to: s, by: onVIP, want: c.vip, only: "IPv4"},
				{from: "outside", to: s, by: onVIP, want: c.vip6, only: "IPv6"},
			})
			p.local = append(p.local, netip.MustParseAddr("192.168.7.50"), netip.MustParseAddr("fd00:7::50"))
			p.set(t, s)
			p.check(t, []row{
				{from: "outside", to: s, by: onVIP, want: c.known, only: "IPv4"},
				{from: client, to: s, by: onVIP, want: c.known, only: "IPv4"},
				{from: "outside", to: s, by: onVIP, want: c.known6, only: "IPv6"},
			})
		})
	}
}

// TestNodePortsMayMove leaves nothing where they were before a restart.
func TestNodePortsMayMove(t *testing.T) {
	t.Parallel()
	s := service{name: "node", number: 1, kind: "NodePort", endpoints: at("pod-1")}
	p := newProxy(t, settings())
	yes, no := masqueraded("pod-1"), refused()
	for _, step := range []struct {
		ports                   plan.NodePorts
		loopback, first, second want
	}{
		{plan.NodePorts{Localhost: true}, yes, yes, yes},
		{plan.NodePorts{Localhost: true, Prefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, yes, no, no},
		{plan.NodePorts{}, no, yes, yes},
		{plan.NodePorts{Primary: true}, no, yes, no},
		{plan.NodePorts{Localhost: true}, yes, yes, yes},
	} {
		p.options.Plan.NodePorts = step.ports
		p.start(t)
		p.set(t, s)
		p.check(t, []row{
			{from: "node", to: s, by: onLoopback, want: step.loopback, only: "IPv4"},
			{from: "outside", to: s, by: nodePort, want: step.first, only: "IPv4"},
			{from: "outside", to: s, by: onSecond, want: step.second, only: "IPv4"},
		})
	}
}

func TestLocalPolicyFromLocalhost(t *testing.T) {
	t.Parallel()
	spec := "externalTrafficPolicy: Local"
	here := service{name: "here", number: 1, kind: "NodePort", spec: spec, endpoints: at("pod-1", "remote-1")}
	away := service{name: "away", number: 2, kind: "NodePort", spec: spec, endpoints: at("remote-1")}
	p := newProxy(t, settings())
	p.set(t, here, away)
	p.check(t, []row{
		{from: "node", to: here, by: onLoopback, want: masqueraded("pod-1", "remote-1"), only: "IPv4"},
		{from: "node", to: away, by: onLoopback, want: masqueraded("remote-1"), only: "IPv4"},
		{from: "node", to: here, by: onLoopback, want: refused(), only: "IPv6"},
	})
	if packets, _, err := p.conn.Counter(iptables.LocalhostNodePorts); err != nil || packets == 0 {
		t.Errorf("%d packets counted, %v", packets, err)
	}
}

// TestNeighboursDoNotReachLoopback has a pod send to 127.0.0.1 of the node,
// which the kernel takes once route_localnet is on.
func TestNeighboursDoNotReachLoopback(t *testing.T) {
	t.Parallel()
	for _, guarded := range []bool{true, false} {
		o := settings()
		o.NodePorts.Localhost = guarded
		p := newProxy(t, o)
		p.set(t)
		if err := p.write("net/ipv4/conf/all/route_localnet", "1"); err != nil {
			t.Fatal(err)
		}
		// At one socket, what comes to loopback and what comes to the node.
		conn, err := p.Self.Namespace.ListenPacket("udp4", "0.0.0.0:4000")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		send(t, p, netip.MustParseAddrPort("127.0.0.1:4000"), "to loopback")
		send(t, p, netip.MustParseAddrPort("192.168.7.1:4000"), "to the node")
		if err := conn.SetReadDeadline(time.Now().Add(deadline)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 100)
		n, _, err := conn.ReadFrom(b)
		if err != nil {
			t.Fatal(err)
		}
		if first := string(b[:n]); (first == "to the node") != guarded {
			t.Errorf("guarded %v: first received %q", guarded, first)
		}
	}
}

// send puts a UDP datagram on the wire from pod-1 to the node, as it is.
func send(t *testing.T, p *proxy, to netip.AddrPort, payload string) {
	t.Helper()
	from := p.Pods[0].IPv4().As4()
	dst := to.Addr().As4()
	// Without a checksum, which UDP allows (RFC 768).
	udp := binary.BigEndian.AppendUint16([]byte{0x10, 0x00}, to.Port())
	udp = append(binary.BigEndian.AppendUint16(udp, uint16(8+len(payload))), 0, 0)
	udp = append(udp, payload...)
	ip := []byte{0x45, 0, 0, 0, 0, 1, 0, 0, 64, unix.IPPROTO_UDP, 0, 0}
	ip = append(append(ip, from[:]...), dst[:]...)
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)+len(udp)))
	binary.BigEndian.PutUint16(ip[10:], checksum(ip))
	err := p.Pods[0].Namespace.Do(func() error { return transmit(append(ip, udp...)) })
	if err != nil {
		t.Fatal(err)
	}
}

// transmit sends an IPv4 packet over eth0 to everybody there.
func transmit(packet []byte) error {
	bigEndian := binary.BigEndian.AppendUint16(nil, unix.ETH_P_IP)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	link, err := net.InterfaceByName("eth0")
	if err != nil {
		return err
	}
	to := &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16(bigEndian), Ifindex: link.Index, Halen: 6}
	copy(to.Addr[:], []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	return unix.Sendto(fd, packet, 0, to)
}
