// Package node tests the daemon with a real API server while its Node object,
// or the account by which it reads it, changes.
package node
