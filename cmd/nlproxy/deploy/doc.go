// Package deploy holds what is put into a cluster and around it: the objects
// that run nlproxy on nodes, a unit of systemd, a dashboard and alert rules.
//
// Guarantees:
//   - Everything is part of the binary; no file is read.
//   - The objects run one container that may do no more than the product needs:
//     NET_ADMIN is its only capability. Where Options.Init asks for it, a
//     privileged one runs before it and ends.
//   - Options that would make objects which cannot work are refused, each with
//     one error that names the flag.
//   - Dashboard and rules use only metrics that nlproxy serves.
package deploy
