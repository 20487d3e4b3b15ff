// Package addr follows the addresses of this host's interfaces over rtnetlink.
//
// Guarantees: the kernel's notices are subscribed to before the first list, so
// no change is missed; a list that the kernel says was interrupted is made
// again, and a partial one only ever adds addresses; what a caller is handed
// is sorted, without duplicates, and never changed afterwards.
package addr
