// Package takeover holds the tests in which a node goes from kube-proxy to
// nlproxy and back while it serves.
//
// The way there is to stop kube-proxy and start nlproxy, in either order: the
// rules of the one serve until those of the other do, and what kube-proxy has
// left is removed after that.
//
// The way back is to stop nlproxy, whose rules stay, to start kube-proxy, to
// wait until it has written its rules, and then to run "nlproxy cleanup". On
// iptables-nft kube-proxy has the chains themselves, and nothing is removed.
// In nftables mode it begins by removing them, long before its own rules are
// there, by a program called iptables if it finds one: it finds none at its first
// start.
package takeover
