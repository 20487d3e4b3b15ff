package lab

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
)

// A Server says who it is: to each line (TCP, SCTP) and each datagram (UDP) it
// replies with its place's name, the address and port at which it was reached,
// and the address and port from which.
type Server struct {
	name    string
	asked   atomic.Int64
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	open   map[io.Closer]struct{}
}

// Serve starts a server at port of each of p's addresses. Network is tcp, udp
// or sctp. It accepts when Serve returns, and the caller closes it.
func (p *Place) Serve(network string, port uint16) (*Server, error) {
	s := &Server{name: p.Name, open: make(map[io.Closer]struct{})}
	for _, a := range p.Addresses {
		if err := s.listen(p.Namespace, network, netip.AddrPortFrom(a, port)); err != nil {
			return nil, errors.Join(fmt.Errorf("serve %s port %d at %s: %w", network, port, p.Name, err), s.Close())
		}
	}
	return s, nil
}

// Asked is how many questions have reached s. Whoever has an answer is counted.
func (s *Server) Asked() int { return int(s.asked.Load()) }

// Close stops listening, cuts all connections and waits until s is at rest.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	var errs []error
	for c := range s.open {
		errs = append(errs, c.Close())
	}
	clear(s.open)
	s.mu.Unlock()
	s.running.Wait()
	return errors.Join(errs...)
}

func (s *Server) listen(ns *Namespace, network string, at netip.AddrPort) error {
	switch network {
	case "udp":
		conn, err := ns.ListenPacket(network, at.String())
		if err != nil {
			return err
		}
		s.start(conn, func() { s.replyPackets(conn, at) })
	case "tcp", "sctp":
		l, err := listenStream(ns, network, at)
		if err != nil {
			return err
		}
		s.start(l, func() { s.accept(l) })
	default:
		return net.UnknownNetworkError(network)
	}
	return nil
}

func listenStream(ns *Namespace, network string, at netip.AddrPort) (net.Listener, error) {
	if network == "sctp" {
		return listenSCTP(ns, at)
	}
	return ns.Listen(network, at.String())
}

// start runs work, which uses c, until it returns by itself or Close closes c.
func (s *Server) start(c io.Closer, work func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = c.Close() // no one ever used it
		return
	}
	s.open[c] = struct{}{}
	s.running.Go(func() {
		work()
		s.end(c)
	})
}

// end closes c unless Close has.
func (s *Server) end(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.open[c]; open {
		delete(s.open, c)
		_ = c.Close() // the peer is gone or the listener broke: no one is left to tell
	}
}

func (s *Server) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s.start(conn, func() { s.replyLines(conn) })
	}
}

func (s *Server) replyLines(conn net.Conn) {
	lines := bufio.NewScanner(conn)
	reply := []byte(s.reply(conn.LocalAddr(), conn.RemoteAddr()))
	for lines.Scan() {
		s.asked.Add(1)
		if _, err := conn.Write(reply); err != nil {
			return
		}
	}
}

func (s *Server) replyPackets(conn net.PacketConn, at netip.AddrPort) {
	question := make([]byte, 1)
	for {
		_, from, err := conn.ReadFrom(question)
		if err != nil {
			return
		}
		s.asked.Add(1)
		// A client may be gone by now; the next one is not.
		_, _ = conn.WriteTo([]byte(s.reply(net.UDPAddrFromAddrPort(at), from)), from)
	}
}

func (s *Server) reply(at, from net.Addr) string {
	return fmt.Sprintf("%s %s %s\n", s.name, at, from)
}

// parseReply is the outcome that a server's reply stands for.
func parseReply(line string) (Outcome, error) {
	fields := strings.Fields(line)
	if len(fields) != 3 {
		return Outcome{}, fmt.Errorf("reply %q is not of this lab's servers", line)
	}
	at, err := netip.ParseAddrPort(fields[1])
	if err != nil {
		return Outcome{}, fmt.Errorf("reply %q: %w", line, err)
	}
	from, err := netip.ParseAddrPort(fields[2])
	if err != nil {
		return Outcome{}, fmt.Errorf("reply %q: %w", line, err)
	}
	return Outcome{Kind: Answered, By: fields[0], At: at, Source: from}, nil
}
