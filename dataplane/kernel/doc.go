// Package kernel is the only nf_tables socket of nlproxy.
//
// Guarantees:
//   - Atomicity. Apply commits all its operations, over both families and all
//     tables, as one nf_tables transaction, or changes nothing. The one
//     exception: where the only thing in the way are chains that cannot be
//     deleted yet, all else is committed first and the deletions follow.
//   - Nothing leaks. All replies to a call are read before it returns; an error
//     belongs to the call that caused it, and to the operation that caused it.
//   - An error is one of three. *Refused names every object that the kernel
//     did not want, *Uncertain says that the outcome is not known, and after
//     any other error of Apply nothing has changed.
//   - Consistency. Every chain that List or ListChain returns was like that at
//     one moment; all of them together if the generation has not changed.
//   - Ownership. Nothing is touched that an operation does not name. Slices
//     passed in are not kept, slices returned are the caller's.
//   - A Conn is safe for concurrent use; its calls run one after the other.
//
// Nothing here decides what the rules are; package rules holds them as values.
package kernel
