// Package readme runs every command of the README, in its order, in a copy of
// the repository and a private network.
package readme
