// Package model holds what exists: services, endpoints and this node, as
// plain values that know nothing of any source, kernel or rule.
//
// Everything here is immutable once it is part of a Snapshot. A source builds
// new values and never edits ones it has handed out, so a Snapshot may be read
// from any goroutine without a lock.
//
// Values are already checked: an Addr is of the family that its field says, a
// port is between 1 and 65535, and a name is legal. What could not be parsed
// never becomes a model value; a source reports it and leaves it out.
package model
