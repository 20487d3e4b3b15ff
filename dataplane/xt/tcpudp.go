package xt

import (
	"github.com/google/nftables/expr"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

const (
	tcpSize = 12
	udpSize = 9
)

// PortRange is a range of ports, both ends included.
type PortRange struct{ Low, High uint16 }

// AnyPort holds every port.
var AnyPort = PortRange{Low: 0, High: 0xffff}

func (r PortRange) encode(b []byte) {
	putUint16(b, r.Low)
	putUint16(b[2:], r.High)
}

func portRangeAt(b []byte, at int) PortRange {
	return PortRange{Low: uint16At(b, at), High: uint16At(b, at+2)}
}

// TCPInfo is struct xt_tcp of linux/netfilter/xt_tcpudp.h.
type TCPInfo struct {
	Source, Destination PortRange
	// Option is the TCP option that must be present; 0 for none.
	Option uint8
	// FlagMask are the TCP flags looked at, FlagSet those that must be set.
	FlagMask, FlagSet uint8
	// Invert holds the XT_TCP_INV_ flags.
	Invert uint8
}

// TCP is a bare `-m tcp`: true for every TCP packet whose header is whole.
func TCP() []expr.Any {
	return match("tcp", 0, TCPInfo{Source: AnyPort, Destination: AnyPort})
}

func (i TCPInfo) encode() []byte {
	b := payload(tcpSize)
	i.Source.encode(b)
	i.Destination.encode(b[4:])
	copy(b[8:], []byte{i.Option, i.FlagMask, i.FlagSet, i.Invert})
	return b
}

func parseTCP(_ model.Family, b []byte) (Info, error) {
	return TCPInfo{
		Source: portRangeAt(b, 0), Destination: portRangeAt(b, 4),
		Option: b[8], FlagMask: b[9], FlagSet: b[10], Invert: b[11],
	}, nil
}

// UDPInfo is struct xt_udp of linux/netfilter/xt_tcpudp.h.
type UDPInfo struct {
	Source, Destination PortRange
	// Invert holds the XT_UDP_INV_ flags.
	Invert uint8
}

// UDP is a bare `-m udp`: true for every UDP packet whose header is whole.
func UDP() []expr.Any {
	return match("udp", 0, UDPInfo{Source: AnyPort, Destination: AnyPort})
}

func (i UDPInfo) encode() []byte {
	b := payload(udpSize)
	i.Source.encode(b)
	i.Destination.encode(b[4:])
	b[8] = i.Invert
	return b
}

func parseUDP(_ model.Family, b []byte) (Info, error) {
	return UDPInfo{Source: portRangeAt(b, 0), Destination: portRangeAt(b, 4), Invert: b[8]}, nil
}
