package iptables

import (
	"encoding/binary"
	"net/netip"
	"strings"

	"github.com/google/nftables/expr"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/nlproxy/nlproxy/dataplane/xt"
)

// Destination is where traffic to a service goes before it is translated. The
// address is unspecified, of the family in question, for a node port, which is
// served on addresses of the node.
type Destination struct {
	Protocol model.Protocol
	Addr     netip.AddrPort
}

// FrontendChains are those that Frontends reads, of both families: in nat where
// services are translated, in filter where they are refused.
func FrontendChains() []rules.ChainID {
	var all []rules.ChainID
	for _, f := range model.Families {
		for _, c := range [...]struct{ table, name string }{
			{natTable, services}, {natTable, nodePorts},
			{filterTable, services}, {filterTable, externalServices},
		} {
			all = append(all, chain(f, c.table, c.name).ID)
		}
	}
	return all
}

// Frontends tells which service port each destination is, by the rules and
// their comments in chains: those of FrontendChains as the kernel lists them,
// written by this package or by kube-proxy 1.37. The first rule for a destination
// counts, as it does for traffic. Rules that name no service port or no
// destination port are passed over.
func Frontends(chains []rules.ListedChain) map[Destination]model.PortName {
	all := make(map[Destination]model.PortName)
	for _, c := range chains {
		for _, r := range c.Rules {
			f := frontendReader{family: c.ID.Table.Family}
			exprs, err := rules.Decode(f.family, r.Exprs)
			if err != nil {
				continue
			}
			for _, e := range exprs {
				f.read(e)
			}
			d, name, ok := f.frontend()
			if _, taken := all[d]; ok && !taken {
				all[d] = name
			}
		}
	}
	return all
}

// frontendReader gathers what a rule says about a frontend.
type frontendReader struct {
	family model.Family
	loaded expr.Any
	// limited says that there is a test of the destination address; addr is what
	// it must be, if that is one address.
	limited  bool
	addr     netip.Addr
	protocol model.Protocol
	port     uint16
	comment  string
}

func (f *frontendReader) read(e expr.Any) {
	switch e := e.(type) {
	case *expr.Meta:
		f.loaded = e
	case *expr.Payload:
		f.loaded = e
		f.limited = f.limited || f.isDestination(e)
	case *expr.Bitwise:
		f.loaded = nil // a range of addresses, or a mark
	case *expr.Cmp:
		if e.Op == expr.CmpOpEq {
			f.compare(e.Data)
		}
	case *expr.Match:
		f.match(e)
	}
}

func (f *frontendReader) compare(value []byte) {
	switch loaded := f.loaded.(type) {
	case *expr.Meta:
		if loaded.Key == expr.MetaKeyL4PROTO && len(value) > 0 {
			f.protocol = model.Protocol(value[0])
		}
	case *expr.Payload:
		switch {
		case f.isDestination(loaded) && len(value) == f.family.Bits()/8:
			f.addr, _ = netip.AddrFromSlice(value)
		case loaded.Base == expr.PayloadBaseTransportHeader && loaded.Offset == 2 && len(value) == 2:
			f.port = binary.BigEndian.Uint16(value)
		}
	}
}

func (f *frontendReader) isDestination(p *expr.Payload) bool {
	return p.Base == expr.PayloadBaseNetworkHeader && p.Offset == addressOffsets[f.family].destination
}

// match reads comments and ports. Older versions of iptables-nft write those of
// TCP and UDP as extensions, too.
func (f *frontendReader) match(m *expr.Match) {
	info, err := xt.ParseMatch(f.family, m)
	if err != nil {
		return
	}
	switch i := info.(type) {
	case xt.CommentInfo:
		f.comment = i.Text
	case xt.TCPInfo:
		f.single(i.Destination)
	case xt.UDPInfo:
		f.single(i.Destination)
	case xt.SCTPInfo:
		f.single(i.Destination)
	}
}

func (f *frontendReader) single(r xt.PortRange) {
	if r.Low == r.High {
		f.port = r.Low
	}
}

// frontend returns what was read, if it is all that makes a frontend.
func (f *frontendReader) frontend() (d Destination, name model.PortName, ok bool) {
	name, ok = portName(f.comment)
	name.Protocol = f.protocol
	if !f.limited {
		f.addr = unspecified(f.family)
	}
	d = Destination{f.protocol, netip.AddrPortFrom(f.addr, f.port)}
	return d, name, ok && f.addr.IsValid() && f.protocol != 0 && f.port != 0
}

// portName reads the beginning of a comment such as
// "default/web:http cluster IP": what model.PortName.String makes.
func portName(comment string) (name model.PortName, ok bool) {
	text, _, _ := strings.Cut(comment, " ")
	namespace, rest, ok := strings.Cut(text, "/")
	service, port, _ := strings.Cut(rest, ":")
	name.Name, name.Port = model.Name{Namespace: namespace, Name: service}, port
	return name, ok && namespace != "" && service != ""
}

// unspecified is the address that stands for any of a family.
func unspecified(f model.Family) netip.Addr {
	if f == model.IPv6 {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}
