// Package golden holds our iptables ruleset against kube-proxy's, byte for
// byte.
//
// A case is a folder of integration/testdata/golden: the objects of an API
// server, a KubeProxyConfiguration, and the text of the ruleset that
// kube-proxy 1.37.2 left for them in a namespace such as Namespace makes, read
// with iptables-nft 1.8.9 on Linux 6.18 and normalised. The API server's
// service ranges were 10.96.0.0/16 and fd00:96::/108.
//
// Normalise is a pure function of what the tools print, so that a difference
// between two texts is one between two rulesets and not of the moment at which
// they were read.
package golden
