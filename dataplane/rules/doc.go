// Package rules holds nf_tables objects as values, their difference and their
// text.
//
// Guarantees:
//   - Ownership is explicit. A chain is Private (one owner's, as a whole),
//     Shared (ours as a whole, filled by many owners) or Lent (others own it;
//     single rules of it are ours). What is not ours is never flushed, deleted
//     or reordered.
//   - The identity of a rule is its expressions as the kernel holds them,
//     counter values excepted. The edits of a Round lead from what there is to
//     what is wanted, and touch no rule whose identity and place are already
//     right, so that counters, recent lists and connections stay.
//   - Changes are ordered: cut anywhere into transactions, no packet meets a
//     chain that is not yet complete.
//
// Nothing here talks to a kernel; package kernel does.
package rules
