package kernel

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/rules"
)

// ErrInterrupted says that the ruleset changed while it was listed, each time
// that it was tried.
var ErrInterrupted = errors.New("the ruleset kept changing while it was listed")

// Uncertain says that a transaction was sent, and that it is not known whether
// it was committed: list and compare.
type Uncertain struct {
	// Err is why it is not known.
	Err error
}

// Error implements error.
func (u *Uncertain) Error() string { return "outcome of the transaction unknown: " + u.Err.Error() }

// Unwrap returns Err.
func (u *Uncertain) Unwrap() error { return u.Err }

// Refused says which objects of a transaction the kernel did not accept. It is
// returned as *Refused.
type Refused struct {
	// Objects are the refused objects, in the order of the operations; at
	// least one.
	Objects []Refusal
	// Incomplete says that there may be more than the kernel could tell.
	Incomplete bool
	// Rest says that everything else has been committed, in more than one
	// transaction, and that Apply returned handles as well. It is set only
	// where all of Objects are chains that could not be deleted because they
	// are in use. Otherwise nothing has changed.
	Rest bool
}

// Refusal is one object that was not accepted.
type Refusal struct {
	Place rules.Place
	Verb  rules.Verb
	Errno unix.Errno
	// Feature is the kernel module that is missing, where that is the reason,
	// such as "xt_recent"; else empty. Kernels that do not say which of a
	// rule's expressions they refuse leave several, separated by " or ".
	Feature string
	// Detail is the reason in words, where it is known.
	Detail string

	op int // index of the operation
}

// named is how many objects Error names: of a table that belongs to another
// program every operation is refused.
const named = 10

// Error has one line for each object, of at most the first ten.
func (r *Refused) Error() string {
	var lines []string
	for _, o := range r.Objects[:min(len(r.Objects), named)] {
		lines = append(lines, o.String())
	}
	if more := len(r.Objects) - named; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d others", more))
	}
	if r.Incomplete {
		lines = append(lines, "and perhaps others that the kernel had no room to name")
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the error numbers, for errors.Is.
func (r *Refused) Unwrap() []error {
	errs := make([]error, len(r.Objects))
	for i, o := range r.Objects {
		errs[i] = o.Errno
	}
	return errs
}

// String says in one line what was refused and why, for instance
// "default/web: ip nat KUBE-SVC-A rule 1: append: the kernel lacks xt_recent
// (no such file or directory)".
func (r Refusal) String() string {
	s := fmt.Sprintf("%v: %v: ", r.Place, r.Verb)
	switch {
	case r.Feature != "":
		return fmt.Sprintf("%sthe kernel lacks %s (%v)", s, r.Feature, r.Errno)
	case r.Detail != "":
		return fmt.Sprintf("%s%s (%v)", s, r.Detail, r.Errno)
	}
	return s + r.Errno.Error()
}

// onlyBusyChains reports whether chains in use, which could not be deleted,
// are all that was refused.
func (r *Refused) onlyBusyChains() bool {
	for _, o := range r.Objects {
		if o.Verb != rules.DeleteChain || o.Errno != unix.EBUSY {
			return false
		}
	}
	return true
}

// refusal explains the kernel's answer to op, the i-th of its transaction.
func refusal(i int, op *rules.Op, v verdict) Refusal {
	r := Refusal{Place: op.Place, Verb: op.Verb, Errno: v.errno, Detail: v.detail, op: i}
	b := blamed(op, v.offset)
	r.Feature = feature(op, v.errno, b)
	if r.Detail == "" && r.Feature == "" {
		r.Detail = explain(op, v.errno, b)
	}
	return r
}

// explain says in words what errno means for op, or "" if errno says it all.
// Where each comes from: net/netfilter/nf_tables_api.c, 6.18.
func explain(op *rules.Op, errno unix.Errno, b blame) string {
	switch {
	case b.expr != nil && errno == unix.ENOENT:
		return missing(b.expr)
	case errno == unix.EOPNOTSUPP && jump(b.expr) != "": // nft_verdict_init
		return fmt.Sprintf("chain %s, to which it jumps, is a base chain", jump(b.expr))
	case b.expr != nil:
		return fmt.Sprintf("expression %d (%s) is not accepted", b.index+1, describe(b.expr))
	case errno == unix.ENOENT && (op.Verb == rules.DeleteTable || b.attribute == unix.NFTA_RULE_TABLE):
		return "the table does not exist"
	case errno == unix.ENOENT && (op.Verb == rules.DeleteChain || b.attribute == unix.NFTA_RULE_CHAIN && op.Verb >= rules.Prepend):
		return "the chain does not exist"
	case errno == unix.ENOENT && encodings[op.Verb].handle != 0:
		return fmt.Sprintf("the rule with handle %d does not exist", op.Handle)
	case op.Verb == rules.AddChain && (errno == unix.EEXIST || errno == unix.EOPNOTSUPP):
		return "the chain exists with another type, hook or priority, or its type does not go with them"
	case errno == unix.EBUSY && op.Verb == rules.DeleteChain:
		return "the chain is in use"
	case errno == unix.EPERM: // nft_table_lookup
		return "another program owns the table, and it alone may change it"
	case errno == unix.EMLINK, errno == unix.ELOOP:
		return "jumps in a circle, or too deep"
	}
	return ""
}
