// Package plan decides what this node does for services: every policy is
// decided here and nowhere else.
//
// A Planner turns facts of package model into decisions for one family: which
// frontends there are, what happens to traffic for each, which endpoints it
// may reach, and what is masqueraded. Encoders, conntrack and health checks
// read only these decisions.
//
// Guarantees:
//   - A decision depends on the snapshot and the options alone, not on the
//     order in which objects came or on what was planned before.
//   - A frontend (address, port, protocol) belongs to one service. Where two
//     claim it the winner is fixed, and the loser is told and keeps all else
//     that it has.
//   - Planning the changed names of a snapshot gives the same decisions as
//     planning every name; what the change of one service means for others is
//     part of the answer.
package plan
