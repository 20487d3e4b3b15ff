// Package lab makes private networks to try the product in: namespaces, and a
// small node with pods, a neighbour and a client, over which real traffic
// runs.
//
// Guarantees:
//   - Nothing outside is touched. Everything happens in namespaces that this
//     process made, and no name of theirs is written anywhere.
//   - Everything ends with the process: namespaces are held by open files
//     alone, and a program that was run again dies with the one that ran it.
//   - A socket stays in the namespace in which it was made, whichever goroutine
//     uses it later. Code is in another namespace only while it is inside
//     Namespace.Do.
//   - Every wait has a deadline.
//
// No root is needed where the kernel lets users make user namespaces. Nothing
// here imports package testing; labtest does.
package lab
