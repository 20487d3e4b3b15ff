// Package cluster runs a real API server, and a real kube-proxy beside it, in
// a namespace of package lab.
//
// The programs are those of the module integration/peers. They are built when
// a test binary first needs them, into the user's cache, and used again by all
// later ones; Main does this before the tests enter their private network,
// from which no module can be fetched.
//
// Guarantees:
//   - A program that was started is killed when its test ends, or when the
//     process does.
//   - What programs print is part of the output of a test that fails.
//   - Every wait for a program has a deadline, and ends when the program does.
//   - Clients may be used from any goroutine: they dial into the namespace.
//
// A namespace holds one cluster: its ports are the usual ones, which no
// outgoing connection takes by chance, so that a server that was killed finds
// its own free.
package cluster
