package xt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

// Info is what an extension keeps in a rule: one of the Info types here.
type Info interface {
	encode() []byte
}

// ErrUnknown is returned for an extension or revision not known here.
var ErrUnknown = errors.New("unknown xtables extension")

// extension names an extension and its revision. What one revision keeps may
// differ by family all the same, as for MASQUERADE, so parsers are told it.
type extension struct {
	name     string
	revision uint32
}

// parser reads the payload of an extension, which is at least size bytes long.
type parser struct {
	size  int
	parse func(f model.Family, b []byte) (Info, error)
}

var matches = map[extension]parser{
	{"addrtype", 1}:  {addrTypeSize, parseAddrType},
	{"comment", 0}:   {commentSize, parseComment},
	{"conntrack", 3}: {conntrackSize, parseConntrack},
	{"nfacct", 0}:    {nfacctSize, parseNFAcct},
	{"nfacct", 1}:    {nfacctSize, parseNFAcct},
	{"recent", 1}:    {recentSize, parseRecent},
	{"sctp", 0}:      {sctpSize, parseSCTP},
	{"statistic", 0}: {statisticSize, parseStatistic},
	{"tcp", 0}:       {tcpSize, parseTCP},
	{"udp", 0}:       {udpSize, parseUDP},
}

var targets = map[extension]parser{
	{"DNAT", 2}:       {dnatSize, parseDNAT},
	{"MARK", 2}:       {markSize, parseMark},
	{"MASQUERADE", 0}: {masqueradeSize, parseMasquerade},
	{"REJECT", 0}:     {rejectSize, parseReject},
}

// ParseMatch reads the payload of a match in a table of family f. The error
// wraps ErrUnknown if there is no Info type for it.
func ParseMatch(f model.Family, m *expr.Match) (Info, error) {
	return parse(matches, extension{m.Name, m.Rev}, f, m.Info)
}

// ParseTarget reads the payload of a target in a table of family f. The error
// wraps ErrUnknown if there is no Info type for it.
func ParseTarget(f model.Family, t *expr.Target) (Info, error) {
	return parse(targets, extension{t.Name, t.Rev}, f, t.Info)
}

func parse(known map[extension]parser, e extension, f model.Family, info xt.InfoAny) (Info, error) {
	p, ok := known[e]
	if !ok {
		return nil, fmt.Errorf("%w: %s revision %d", ErrUnknown, e.name, e.revision)
	}
	raw, ok := info.(*xt.Unknown)
	if !ok {
		return nil, fmt.Errorf("%s revision %d: payload is %T, not raw bytes", e.name, e.revision, info)
	}
	if len(*raw) < p.size {
		return nil, fmt.Errorf("%s revision %d: %d bytes, need %d", e.name, e.revision, len(*raw), p.size)
	}
	i, err := p.parse(f, *raw)
	if err != nil {
		return nil, fmt.Errorf("%s revision %d: %w", e.name, e.revision, err)
	}
	return i, nil
}

func match(name string, revision uint32, i Info) []expr.Any {
	return []expr.Any{&expr.Match{Name: name, Rev: revision, Info: raw(i)}}
}

func target(name string, revision uint32, i Info) []expr.Any {
	return []expr.Any{&expr.Target{Name: name, Rev: revision, Info: raw(i)}}
}

func raw(i Info) *xt.Unknown {
	b := xt.Unknown(i.encode())
	return &b
}

// alignment is XT_ALIGN in linux/netfilter/x_tables.h for all architectures
// whose 64-bit integers are aligned to 8 bytes.
const alignment = 8

// payload returns size zero bytes, and more up to the alignment.
func payload(size int) []byte {
	return make([]byte, (size+alignment-1)&^(alignment-1))
}

// Fields of the kernel's structures are in the byte order of the machine.

func putUint16(b []byte, v uint16) { binary.NativeEndian.PutUint16(b, v) }
func putUint32(b []byte, v uint32) { binary.NativeEndian.PutUint32(b, v) }

func uint16At(b []byte, at int) uint16 { return binary.NativeEndian.Uint16(b[at:]) }
func uint32At(b []byte, at int) uint32 { return binary.NativeEndian.Uint32(b[at:]) }

// text returns the bytes before the first NUL.
func text(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// addrAt reads a union nf_inet_addr (linux/netfilter.h).
func addrAt(f model.Family, b []byte, at int) netip.Addr {
	if f == model.IPv4 {
		return netip.AddrFrom4([4]byte(b[at : at+4]))
	}
	return netip.AddrFrom16([16]byte(b[at : at+16]))
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}
