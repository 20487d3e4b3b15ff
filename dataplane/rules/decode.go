package rules

import (
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"golang.org/x/sys/unix"
)

// Opaque is an expression that is kept as it is, because its type is not known
// here or could not hold all that it says. Encode gives it back; expr.Marshal
// cannot.
type Opaque struct {
	expr.Any // nil; it makes an Opaque an expression
	// Name is the expression's.
	Name string
	// Data is the payload of NFTA_EXPR_DATA.
	Data []byte
}

// Decode reads the payload of NFTA_RULE_EXPRESSIONS of a rule in a table of
// family f. Extensions keep their payload as it is (Unknown of
// google/nftables/xt, for dataplane/xt to parse), and an expression that is not
// known becomes an *Opaque. The result refers to payload.
//
// It decodes with expr.Unmarshal except where that cannot be trusted with bytes
// from elsewhere: it panics on a verdict that is cut short, and allocates as
// many ranges as a MASQUERADE target says that it has.
func Decode(f model.Family, payload []byte) ([]expr.Any, error) {
	var exprs []expr.Any
	for len(payload) > 0 {
		e, rest, err := cutElement(payload)
		if err != nil {
			return nil, fmt.Errorf("expression %d: %w", len(exprs)+1, err)
		}
		decoded, err := decode(f, e)
		if err != nil {
			return nil, fmt.Errorf("expression %d: %s: %w", len(exprs)+1, e.name, err)
		}
		exprs = append(exprs, decoded)
		payload = rest
	}
	return exprs, nil
}

func decode(f model.Family, e element) (expr.Any, error) {
	switch string(e.name) {
	case "immediate":
		return decodeImmediate(f, e)
	case "match":
		name, revision, info, err := extension(e.data)
		return &expr.Match{Name: name, Rev: revision, Info: info}, err
	case "target":
		name, revision, info, err := extension(e.data)
		return &expr.Target{Name: name, Rev: revision, Info: info}, err
	}
	blank, ok := blanks[string(e.name)]
	if !ok || !fits(e) {
		return &Opaque{Name: string(e.name), Data: e.data}, nil
	}
	decoded := blank()
	return decoded, expr.Unmarshal(byte(f), e.data, decoded)
}

// blanks makes the expressions that expr.Unmarshal can fill.
var blanks = map[string]func() expr.Any{
	"bitwise": func() expr.Any { return new(expr.Bitwise) },
	"cmp":     func() expr.Any { return new(expr.Cmp) },
	"counter": func() expr.Any { return new(expr.Counter) },
	"ct":      func() expr.Any { return new(expr.Ct) },
	"dynset":  func() expr.Any { return new(expr.Dynset) },
	"fib":     func() expr.Any { return new(expr.Fib) },
	"limit":   func() expr.Any { return new(expr.Limit) },
	"log":     func() expr.Any { return new(expr.Log) },
	"lookup":  func() expr.Any { return new(expr.Lookup) },
	"masq":    func() expr.Any { return new(expr.Masq) },
	"meta":    func() expr.Any { return new(expr.Meta) },
	"nat":     func() expr.Any { return new(expr.NAT) },
	"notrack": func() expr.Any { return new(expr.Notrack) },
	"numgen":  func() expr.Any { return new(expr.Numgen) },
	"payload": func() expr.Any { return new(expr.Payload) },
	"quota":   func() expr.Any { return new(expr.Quota) },
	"range":   func() expr.Any { return new(expr.Range) },
	"redir":   func() expr.Any { return new(expr.Redir) },
	"reject":  func() expr.Any { return new(expr.Reject) },
}

// fits reports whether the type for e holds all that e says. A Bitwise has no
// operation but mask and xor, and what is nested in a Dynset would be decoded
// as expr does it.
func fits(e element) bool {
	for a := range attrs(e.data) {
		switch {
		case string(e.name) == "bitwise" && a.kind == nftaBitwiseOp && !isZero(a.data),
			string(e.name) == "dynset" && a.kind == unix.NFTA_DYNSET_EXPR,
			string(e.name) == "dynset" && a.kind == nftaDynsetExpressions:
			return false
		}
	}
	return true
}

// attrs yields the attributes in b up to the first that is cut short.
func attrs(b []byte) iter.Seq[attr] {
	return func(yield func(attr) bool) {
		for len(b) > 0 {
			a, rest, err := cutAttr(b)
			if err != nil || !yield(a) {
				return
			}
			b = rest
		}
	}
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// decodeImmediate reads a verdict, or a value for a register.
func decodeImmediate(f model.Family, e element) (expr.Any, error) {
	for a := range attrs(e.data) {
		if a.kind != unix.NFTA_IMMEDIATE_DATA {
			continue
		}
		for d := range attrs(a.data) {
			if d.kind == unix.NFTA_DATA_VERDICT {
				return decodeVerdict(d.data)
			}
		}
	}
	i := new(expr.Immediate)
	return i, expr.Unmarshal(byte(f), e.data, i)
}

func decodeVerdict(b []byte) (*expr.Verdict, error) {
	v := new(expr.Verdict)
	for len(b) > 0 {
		a, rest, err := cutAttr(b)
		if err != nil {
			return nil, err
		}
		switch a.kind {
		case unix.NFTA_VERDICT_CODE:
			code, err := number(a)
			if err != nil {
				return nil, err
			}
			v.Kind = expr.VerdictKind(int32(code))
		case unix.NFTA_VERDICT_CHAIN:
			v.Chain = text(a)
		}
		b = rest
	}
	return v, nil
}

// extension reads a match or a target, whose attributes have the same types.
func extension(b []byte) (name string, revision uint32, info *xt.Unknown, err error) {
	info = new(xt.Unknown)
	for len(b) > 0 {
		a, rest, err := cutAttr(b)
		if err != nil {
			return "", 0, nil, err
		}
		switch a.kind {
		case unix.NFTA_MATCH_NAME:
			name = text(a)
		case unix.NFTA_MATCH_REV:
			if revision, err = number(a); err != nil {
				return "", 0, nil, err
			}
		case unix.NFTA_MATCH_INFO:
			*info = a.data
		}
		b = rest
	}
	return name, revision, info, nil
}

func number(a attr) (uint32, error) {
	if len(a.data) != 4 {
		return 0, fmt.Errorf("attribute %d has %d bytes, not 4", a.kind, len(a.data))
	}
	return binary.BigEndian.Uint32(a.data), nil
}

// text reads a string that ends in a NUL.
func text(a attr) string { return string(untilNUL(a.data)) }
