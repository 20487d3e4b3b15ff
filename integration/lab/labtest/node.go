package labtest

import (
	"testing"

	"github.com/nlproxy/nlproxy/integration/lab"
)

// Node gives t a node, as lab.NewNode makes it, until t ends.
func Node(t testing.TB, o lab.Options) *lab.Node {
	t.Helper()
	n, err := lab.NewNode(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("close node: %v", err)
		}
	})
	return n
}

// Serve starts a server at p, as lab.Place.Serve does, until t ends.
func Serve(t testing.TB, p *lab.Place, network string, port uint16) *lab.Server {
	t.Helper()
	s, err := p.Serve(network, port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close server at %s: %v", p, err)
		}
	})
	return s
}
