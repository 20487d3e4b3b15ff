package rules

import "fmt"

// Verb is what an Op does.
type Verb uint8

const (
	// AddTable makes a table where it is missing.
	AddTable Verb = iota
	// AddChain makes a chain where it is missing.
	AddChain
	// Prepend puts a rule first in its chain.
	Prepend
	// Append puts a rule last in its chain.
	Append
	// InsertBefore puts a rule before the one with Handle.
	InsertBefore
	// InsertAfter puts a rule after the one with Handle.
	InsertAfter
	// Replace puts a rule in the place of the one with Handle.
	Replace
	// Delete removes the rule with Handle.
	Delete
	// Flush removes all rules of a chain.
	Flush
	// DeleteChain removes a chain without rules that nothing refers to.
	DeleteChain
	// DeleteTable removes a table and all that is in it.
	DeleteTable
)

var verbs = [...]string{"add table", "add chain", "prepend", "append", "insert before",
	"insert after", "replace", "delete", "flush", "delete chain", "delete table"}

// String returns the verb in words.
func (v Verb) String() string {
	if int(v) >= len(verbs) {
		return fmt.Sprintf("verb %d", uint8(v))
	}
	return verbs[v]
}

// MakesRule reports whether the operation puts a rule into the kernel, which
// then has a handle.
func (v Verb) MakesRule() bool { return v >= Prepend && v <= Replace }

// Op is one nf_tables message: an inert value.
type Op struct {
	Verb  Verb
	Place Place
	// Hook is set for AddChain of a base chain.
	Hook *Hook
	// Exprs is the list of expressions, encoded, and Proto as in Rule; for
	// verbs that make a rule.
	Exprs []byte
	Proto uint8
	// Handle is the rule that the verb is relative to.
	Handle uint64
}

// Listed is one rule as the kernel lists it.
type Listed struct {
	Handle uint64
	// Exprs is the payload of NFTA_RULE_EXPRESSIONS.
	Exprs []byte
}

// ListedChain is one chain as the kernel lists it.
type ListedChain struct {
	ID   ChainID
	Hook *Hook
	// Drops is true for a base chain whose policy is to drop.
	Drops bool
	Rules []Listed
}
