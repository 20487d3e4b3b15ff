// Package lean gives back the memory that starting took and serving does not
// need, which on a small node is most of it.
//
// Guarantees:
//   - Nothing that the program holds is lost or changed: pages of its file are
//     read again when they are used again.
//   - Where the kernel does not let go of a page, that page stays, and this is no
//     error.
package lean
