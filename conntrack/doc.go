// Package conntrack looks after the kernel's connection tracking table: it
// deletes flows that lead to endpoints which a plan no longer has, sets the
// table's limits and timeouts, and tells how full it is.
//
// Guarantees of [Cleaner]:
//
//   - A flow is judged by rules that have been written, never by those that are
//     to be: deleted too soon, it would begin anew as it was.
//   - Only flows whose original destination is, or was until the last pass, a
//     frontend of a planned service are deleted, and of these only the ones
//     that lead elsewhere than a new flow may. What is right stays, also over a
//     restart.
//   - What may be stale stays on the list until a whole pass over the table has
//     succeeded, whatever fails in between.
//   - A pass is one dump that is never in memory as a whole, and one look-up for
//     each flow. Where no set of endpoints shrank and no frontend came or went,
//     there is none.
//   - Nothing waits for a pass, and a pass takes no lock for longer than one
//     look-up.
package conntrack
