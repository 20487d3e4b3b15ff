package legacy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// targetHeader is the size of struct xt_entry_target
// (linux/netfilter/x_tables.h): its size, a name and a revision.
const targetHeader = 32

// The names of the targets that x_tables itself knows: XT_STANDARD_TARGET and
// XT_ERROR_TARGET of linux/netfilter/x_tables.h.
const (
	standardTarget = ""
	errorTarget    = "ERROR"
)

// The sizes of the fields that follow in struct xt_standard_target and struct
// xt_error_target.
const (
	verdictSize   = 4
	errorNameSize = 30
)

// verdict is what a standard target says: a jump to that offset in the table,
// or if it is negative, one of these. An entry without a target jumps to the
// one after it.
type verdict int32

// From linux/netfilter.h and linux/netfilter/x_tables.h: -NF_DROP-1 and
// XT_RETURN.
const (
	dropped  verdict = -1
	returned verdict = -5
)

// target is what an entry does.
type target struct {
	kind    targetKind
	verdict verdict // of a standard target
	name    string  // of an error target
}

type targetKind uint8

const (
	// extension is a target of a module, such as DNAT.
	extension targetKind = iota
	// standard is a verdict or a jump.
	standard
	// failure is never reached by a packet. iptables-legacy begins each chain
	// with one that holds its name, and ends the table with one.
	failure
)

// jumps reports whether the target leads to another entry.
func (t target) jumps() bool { return t.kind == standard && t.verdict >= 0 }

// unmarshalTarget reads the target that fills b.
func unmarshalTarget(b []byte) (t target, err error) {
	if size := int(binary.NativeEndian.Uint16(b)); size < targetHeader || size > len(b) {
		return t, fmt.Errorf("target has %d bytes, its entry %d for it", size, len(b))
	}
	body := b[targetHeader:]
	switch name := text(b[2 : targetHeader-1]); name {
	case standardTarget:
		if len(body) < verdictSize {
			return t, errors.New("verdict is cut short")
		}
		return target{kind: standard, verdict: verdict(binary.NativeEndian.Uint32(body))}, nil
	case errorTarget:
		if len(body) < errorNameSize {
			return t, errors.New("name of a chain is cut short")
		}
		return target{kind: failure, name: text(body[:errorNameSize])}, nil
	}
	return target{}, nil
}

// text is what is before the zero byte, if there is one.
func text(b []byte) string {
	before, _, _ := bytes.Cut(b, []byte{0})
	return string(before)
}
