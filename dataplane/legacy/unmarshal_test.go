package legacy

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
)

// made is a table as iptables-legacy makes it, of IPv4, byte by byte.
type made struct {
	bytes []byte
	info  info
	ends  []uint32 // of the entries
}

// add adds an entry with a target.
func (m *made) add(target string, body []byte) {
	l := layouts[model.IPv4]
	size := l.size + targetHeader + (len(body)+alignment-1)/alignment*alignment
	b := make([]byte, size)
	binary.NativeEndian.PutUint16(b[l.targetOffset:], uint16(l.size))
	binary.NativeEndian.PutUint16(b[l.targetOffset+2:], uint16(size))
	binary.NativeEndian.PutUint16(b[l.size:], uint16(size-l.size))
	copy(b[l.size+2:], target)
	copy(b[l.size+targetHeader:], body)
	m.bytes = append(m.bytes, b...)
	m.ends = append(m.ends, uint32(len(m.bytes)))
	m.info.entries++
	m.info.size = uint32(len(m.bytes))
}

func (m *made) standard(v verdict) {
	m.add(standardTarget, binary.NativeEndian.AppendUint32(nil, uint32(v)))
}

func (m *made) failure(name string) {
	body := make([]byte, errorNameSize)
	copy(body, name)
	m.add(errorTarget, body)
}

// accepted is -NF_ACCEPT-1 of linux/netfilter.h.
const accepted verdict = -2

// sample has a base chain INPUT with a rule without a target, a jump to
// KUBE-FORWARD and a policy, and that chain with one rule.
func sample() *made {
	m := new(made)
	m.info.validHooks = 1 << 1
	size := verdict(152)
	m.standard(size)         // to the next one
	m.standard(3*size + 176) // to the first rule of the chain
	m.standard(accepted)     // the policy
	m.info.underflow[1] = 2 * 152
	m.failure("KUBE-FORWARD")
	m.standard(accepted)
	m.standard(returned)
	m.failure("ERROR")
	return m
}

func (m *made) table() (*table, error) { return unmarshalTable(layouts[model.IPv4], m.info, m.bytes) }

var filter = rules.Table{Family: model.IPv4, Name: "filter"}

func TestTableIsReadAndShrinks(t *testing.T) {
	m := sample()
	table, err := m.table()
	if err != nil {
		t.Fatal(err)
	}
	e := table.edit(filter)
	i, b := e.marshal()
	if want := (info{validHooks: 1 << 1, hooks: hooks{underflow: [hookCount]uint32{1: 152}}, entries: 3, size: 2*152 + 176}); i != want {
		t.Errorf("described as %+v, want %+v", i, want)
	}
	want := slices.Concat(m.bytes[:m.ends[0]], m.bytes[m.ends[1]:m.ends[2]], m.bytes[m.ends[5]:])
	if !slices.Equal(b, want) {
		t.Errorf("is\n%x, want\n%x", b, want)
	}
	var all []byte
	for n := range 7 {
		all = append(all, slices.Repeat([]byte{byte(n)}, countersSize)...)
	}
	if got := e.counters(all); len(got) != 3*countersSize || got[0] != 0 || got[countersSize] != 2 || got[2*countersSize] != 6 {
		t.Errorf("counters are %x", got)
	}
}

func TestTableThatIsNotAsItShouldBeIsRefused(t *testing.T) {
	l := layouts[model.IPv4]
	put := binary.NativeEndian.PutUint16
	for name, tc := range map[string]struct {
		spoil func(*made)
		want  string
	}{
		"nothing":              {func(m *made) { m.bytes, m.info.entries = nil, 0 }, "does not end"},
		"no end":               {func(m *made) { m.bytes = m.bytes[:m.ends[5]]; m.info.entries-- }, "does not end"},
		"cut":                  {func(m *made) { m.bytes = m.bytes[:len(m.bytes)-100] }, "cut short"},
		"fewer entries":        {func(m *made) { m.info.entries++ }, "7 entries, the kernel speaks of 8"},
		"target before entry":  {func(m *made) { put(m.bytes[l.targetOffset:], 8) }, "target at 8"},
		"target after entry":   {func(m *made) { put(m.bytes[l.targetOffset:], 152) }, "target at 152"},
		"askew":                {func(m *made) { put(m.bytes[l.targetOffset:], 116) }, "target at 116"},
		"entry without end":    {func(m *made) { put(m.bytes[l.targetOffset+2:], 0) }, "of 0 bytes"},
		"entry beyond table":   {func(m *made) { put(m.bytes[l.targetOffset+2:], 0xfff8) }, "of 65528 bytes"},
		"target beyond entry":  {func(m *made) { put(m.bytes[l.size:], 48) }, "target has 48 bytes"},
		"target of no size":    {func(m *made) { put(m.bytes[l.size:], 0) }, "target has 0 bytes"},
		"jump between entries": {func(m *made) { l.setVerdict(m.bytes, 8) }, "jumps to 8"},
		"jump beyond table":    {func(m *made) { l.setVerdict(m.bytes, math.MaxInt32) }, "jumps to 2147483647"},
		"hook between entries": {func(m *made) { m.info.entry[1] = 8 }, "base chain INPUT"},
		"policy before hook":   {func(m *made) { m.info.entry[1] = 2 * 152; m.info.underflow[1] = 0 }, "base chain INPUT"},
		"policy in a chain":    {func(m *made) { m.info.underflow[1] = m.ends[3] }, "base chain INPUT"},
		"chain without return": {func(m *made) { l.setVerdict(m.bytes[m.ends[4]:], accepted) }, "KUBE-FORWARD does not end"},
	} {
		m := sample()
		tc.spoil(m)
		if _, err := m.table(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func TestInformationThatCannotBeIsRefused(t *testing.T) {
	huge := make([]byte, infoSize)
	binary.NativeEndian.PutUint32(huge[infoSize-4:], maxTable+1)
	for _, b := range [][]byte{nil, make([]byte, infoSize-1), huge} {
		if i, err := unmarshalInfo(b); err == nil {
			t.Errorf("%d bytes are %v", len(b), i)
		}
	}
}

// Whatever the kernel says, nothing panics, and what is written is a table again
// in which nothing is left.
func FuzzTable(f *testing.F) {
	m := sample()
	f.Add(m.bytes, m.info.validHooks, m.info.entry[1], m.info.underflow[1], m.info.entries, false)
	f.Add(m.bytes, uint32(0), uint32(8), uint32(0xffffffff), uint32(0xffffffff), true)
	f.Fuzz(func(t *testing.T, b []byte, valid, entry, underflow, entries uint32, six bool) {
		i := info{validHooks: valid, entries: entries, size: uint32(len(b))}
		for hook := range hookCount {
			i.entry[hook], i.underflow[hook] = entry, underflow
		}
		family := model.IPv4
		if six {
			family = model.IPv6
		}
		read, err := unmarshalTable(layouts[family], i, b)
		if err != nil {
			return
		}
		e := read.edit(filter)
		e.removed(filter)
		e.counters(make([]byte, len(e.entries)*countersSize))
		j, rest := e.marshal()
		written, err := unmarshalTable(layouts[family], j, rest)
		if err != nil {
			t.Fatalf("what is left cannot be read: %v", err)
		}
		if again := written.edit(filter); !again.isEmpty() {
			t.Fatalf("is left: %v", again.removed(filter))
		}
	})
}
