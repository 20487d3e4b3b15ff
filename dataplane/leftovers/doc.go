// Package leftovers finds and removes what a kube-proxy leaves in the kernel
// that is not among the chains of iptables-nft: the tables of its nftables mode,
// the chains of iptables-legacy, and the virtual servers, the device and the
// sets of its ipvs mode. What is in iptables-nft, of the ipvs mode too, goes
// with the chains that nobody wants any more; see package dataplane.
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
//     find nothing takes 0.4 ms (measured on 6.18).
package leftovers
