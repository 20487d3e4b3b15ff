// Package serve answers HTTP on one address.
//
// Guarantees:
//   - An address that cannot be had is tried again until it can, or ends the
//     server if so wished; either way nothing but Run waits for it.
//   - Once told to stop a server accepts no connection, lets the requests that
//     it has end for up to two seconds, and leaves no goroutine or socket.
package serve
