// Package lifecycle holds the tests of the running daemon that need no API
// server: how it starts, is killed, ends, and follows a folder of manifests,
// while traffic goes on.
package lifecycle
