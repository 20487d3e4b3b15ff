package main

import (
	"errors"
	"fmt"

	"github.com/nlproxy/nlproxy/integration/lab"
)

// neighbourhood is the node of the demonstration, with its servers.
type neighbourhood struct {
	node    *lab.Node
	places  map[string]*lab.Place
	servers []*lab.Server
}

// listener is where a server is.
type listener struct {
	place, network string
	port           uint16
}

// listeners has an entry for each server. One on another port than 8080 says so
// in its name.
func listeners() (list []listener) {
	networks := []string{"tcp", "udp"}
	if lab.HasSCTP() {
		networks = append(networks, "sctp")
	}
	for _, place := range []string{"pod-1", "pod-2", "remote-1"} {
		for _, network := range networks {
			list = append(list, listener{place, network, 8080})
		}
		list = append(list, listener{place, "tcp", 9090})
	}
	return list
}

// newNeighbourhood makes the node in this process's network namespace. The
// caller closes it.
func newNeighbourhood() (*neighbourhood, error) {
	node, err := lab.NewNode(lab.Options{Pods: 3, RemotePods: 1})
	if err != nil {
		return nil, err
	}
	n := &neighbourhood{node: node, places: map[string]*lab.Place{}}
	for _, p := range node.Places() {
		n.places[p.Name] = p
	}
	for _, l := range listeners() {
		if err := n.serve(l); err != nil {
			return nil, errors.Join(err, n.close())
		}
	}
	return n, nil
}

func (n *neighbourhood) serve(l listener) error {
	p := *n.places[l.place]
	if l.port != 8080 {
		p.Name = fmt.Sprintf("%s:%d", p.Name, l.port)
	}
	s, err := p.Serve(l.network, l.port)
	if err == nil {
		n.servers = append(n.servers, s)
	}
	return err
}

func (n *neighbourhood) close() error {
	var errs []error
	for _, s := range n.servers {
		errs = append(errs, s.Close())
	}
	return errors.Join(errors.Join(errs...), n.node.Close())
}
