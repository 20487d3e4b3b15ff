// Package rulestest compares rules with what real tools and a real kernel make
// of them, for tests.
//
// Guarantees:
//   - It talks to the kernel over plain netlink, with no code of the product
//     but the encoding under test, and only in the network namespace of the
//     calling thread: call it inside lab.Namespace.Do.
//   - Golden bytes come from iptables-nft and are what the kernel listed. Tests
//     with -update write them anew.
package rulestest
