// Package phrase names the short runs of nf_tables expressions of which rules
// are made: one test or one action each.
//
// Guarantees:
//   - A phrase gives the bytes that iptables-nft 1.8.9 writes for the same test
//     or action, so that its tools read our rules back. Each is proven against
//     bytes that the tool has left in a kernel.
//   - Phrases are independent: each loads what it tests into register 1 and
//     leaves nothing behind for the next, so they may stand in any order.
//   - The slices returned are new; the caller owns them.
package phrase
