// Package leftovers finds and removes what kube-proxy's other modes leave in
// the kernel: the tables of the nftables mode, and the virtual servers, the
// device and the sets of the ipvs mode. The chains of the ipvs mode are in
// tables that package iptables knows, and go with the rules that nobody wants.
//
// Guarantees:
//   - No gap. Nothing here is in the way of rules that are in place already, so
//     whoever calls Remove after writing its own loses no new connection. The
//     tables of both families go in one transaction. Connections that IPVS
//     itself balances end with their virtual server, as they do when kube-proxy
//     cleans up.
//   - Ownership. Only what bears kube-proxy's names is removed, and of the
//     virtual servers only those at an address of its device or at a node port
//     that its sets name: those of other users of IPVS stay, which kube-proxy
//     would flush.
//   - Independence. What goes wrong with one mode or object does not stop the
//     others.
//   - Nothing is loaded into the kernel to look for what cannot be there, and to
//     find nothing costs less than a millisecond.
package leftovers
