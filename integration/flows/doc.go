// Package flows holds the tests of what becomes of flows when services change:
// clients that keep one socket open, entries made over ctnetlink, and how long
// it takes to look through many.
//
// The rules are those of a Dataplane, which tells a Cleaner what it has written,
// both in the namespace of a small node.
package flows
