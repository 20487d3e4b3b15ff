// Package legacy removes what a kube-proxy has left in the x_tables of
// iptables-legacy, where its rules would go on to translate packets beside
// those of nf_tables.
//
// Guarantees:
//   - A table is replaced in one step: a packet meets all of the old rules or
//     none of them. Rules of nf_tables that are in place before the call take
//     over without a gap.
//   - What is a leftover is decided by iptables.Leftover and nowhere else. All
//     other chains, rules, policies and counters stay as they are, byte for
//     byte. A chain that somebody else's rules jump to stays too, empty.
//   - A kernel without these tables is asked nothing, so that it loads nothing:
//     only tables that it says are in use are looked at, and only one that holds
//     leftovers is written to.
//   - A table that cannot be read as iptables-legacy would read it is left
//     alone.
//
// Order: nat goes first, then filter. Once nat is gone, packets are translated
// by nf_tables alone, and what is left in filter accepts what is marked and
// rejects or drops only what nobody has translated. The other way round, a
// failure in between would leave stale translations without the rules that
// guard them. Both worlds share the mark for masquerading, so a packet that was
// marked under the old rules is masqueraded by the new ones.
//
// Limits. The kernel notices that a table has changed between reading and
// replacing it only by the number of its rules. Therefore the lock of
// iptables-legacy is held, where its file can be opened: in a container it has
// to be mounted, as kube-proxy's is. Without it, a change that keeps that number
// can be lost, and counters can. Extensions begin anew with what they remember
// of packets (limit, quota, statistic's nth), as with every command of
// iptables-legacy; hashlimit, recent and set, whose memory has a name, do not.
// Programs of 32 bits, for which tables are laid out in other ways, are refused.
package legacy
