package sysctl

import (
	"errors"
)

// ErrReadOnly says that /proc/sys is mounted read-only, as it is in an
// unprivileged container.
var ErrReadOnly = errors.New("read-only file system")

// Tree is a directory of settings. The zero value is /proc/sys.
type Tree struct {
	// Root is the directory; empty for /proc/sys.
	Root string
}

// Read returns the value of a setting such as "net/ipv4/ip_forward", without
// the white space around it.
func (t Tree) Read(name string) (string, error) { panic("skeleton") }

// Write sets a setting unless it has that value already, and reports whether
// it has changed.
func (t Tree) Write(name, value string) (changed bool, err error) { panic("skeleton") }
