package watch

import (
	"errors"
	"fmt"
	"strings"
)

// lack is what is not known of a node: a set of bits.
type lack uint8

const (
	lacksNode lack = 1 << iota
	lacksAddress
	lacksPodCIDR
)

// nodeError is the ErrNoNode that says what is lacking of which node.
type nodeError struct {
	name, origin string
	lacks        lack
}

func (e nodeError) Error() string {
	var what []string
	if e.lacks&lacksAddress != 0 {
		what = append(what, "no address")
	}
	if e.lacks&lacksPodCIDR != 0 {
		what = append(what, "no pod CIDR")
	}
	switch {
	case e.lacks&lacksNode == 0:
		return fmt.Sprintf("%v: node %s has %s", ErrNoNode, e.name, strings.Join(what, " and "))
	case e.origin == "":
		return fmt.Sprintf("%v: there is no node %s", ErrNoNode, e.name)
	}
	return fmt.Sprintf("%v: there is no node %s (%s)", ErrNoNode, e.name, e.origin)
}

// Unwrap makes it an ErrNoNode.
func (e nodeError) Unwrap() error { return ErrNoNode }

// lackOf returns what an error of nodeState says is lacking.
func lackOf(err error) lack {
	var e nodeError
	errors.As(err, &e)
	return e.lacks
}
