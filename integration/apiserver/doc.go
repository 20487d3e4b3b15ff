// Package apiserver holds the tests of the running daemon against a real API
// server: what it makes of objects and how soon, what it does while the server
// is away, and what it needs to be allowed.
package apiserver
