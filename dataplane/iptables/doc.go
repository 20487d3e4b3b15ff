// Package iptables writes a plan as the KUBE-* chains of kube-proxy's iptables
// mode, in the tables and expressions of iptables-nft.
//
// Guarantees:
//   - Encode is a pure function of a plan: it knows names and order, and no
//     sockets, history or time.
//   - iptables-nft-save and ip6tables-nft-save print what kube-proxy 1.37
//     leaves for the same objects, rule for rule; only the order of chains
//     that kube-proxy fills in no fixed order may differ.
//   - The destination address is tested before all else, so that a rule of a
//     long KUBE-SERVICES that does not match is left after two expressions.
package iptables
