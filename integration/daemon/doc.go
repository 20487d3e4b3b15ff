// Package daemon runs the product's binary in tests, as a node runs it.
//
// Guarantees:
//   - The binary is that of the sources, linked without cgo. It is built when a
//     test binary first needs it, before that enters its private network, and
//     not again while nothing has changed.
//   - A daemon that was started is killed when its test ends, or when the
//     process does.
//   - What it logs is read as it comes, and shown if the test fails.
//   - Every wait ends with an event: a line of the log, the daemon's end, or a
//     deadline, which fails the test.
package daemon
