package kernel

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/rules"
)

// ErrInterrupted says that the ruleset changed while it was listed, each time
// that it was tried.
var ErrInterrupted = errors.New("ruleset kept changing while it was listed")

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
	// Incomplete says that more were refused than the kernel could tell.
	Incomplete bool
	// Rest says that everything else has been committed. It is set only where
	// all of Objects are chains that could not be deleted because they are in
	// use. Otherwise nothing has changed.
	Rest bool
}

// Refusal is one object that was not accepted.
type Refusal struct {
	Place rules.Place
	Verb  rules.Verb
	Errno unix.Errno
	// Feature is the kernel module or option that is missing, where that is
	// the reason, such as "xt_recent"; else empty.
	Feature string
	// Detail says more where more is known, such as the kernel's own words.
	Detail string
}

// Error has one line for each object.
func (r *Refused) Error() string {
	lines := make([]string, len(r.Objects))
	for i, o := range r.Objects {
		lines[i] = o.String()
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

// String says in one line what was refused and why.
func (r Refusal) String() string {
	return r.Place.String() + ": " + r.Verb.String() + ": " + r.Errno.Error()
}
