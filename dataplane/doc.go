// Package dataplane makes the kernel agree with what exists.
//
// Guarantees:
//   - Set takes the whole desired state and is idempotent: where the kernel
//     agrees already, nothing is written, and counters, affinity and
//     connections stay.
//   - A change goes into one transaction for both families and all tables.
//     One too large for that goes in bounded transactions, in such an order
//     that no packet meets anything half-built.
//   - After a transaction that failed or whose outcome is not known, nothing
//     remembered is trusted: the kernel is listed and compared.
//   - A service that the kernel refuses is set aside alone, named, and tried
//     again later. All others are programmed.
//   - What others do to rules of ours is repaired: by the next Set if it stops
//     all traffic, else by the first one after Options.Recheck.
//   - The trigger of a change is reported once, by the Set that has made it
//     true, also after others that failed.
//   - What others own is never flushed, deleted or reordered.
package dataplane
