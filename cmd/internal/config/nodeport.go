package config

import (
	"net/netip"
	"slices"
)

// keyword returns the prefixes that a word in nodePortAddresses stands for;
// none for primary, which only the Node object tells.
func keyword(word string) (prefixes []netip.Prefix, ok bool) {
	switch word {
	case "primary":
		return nil, true
	case "localhost":
		return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}, true
	case "all":
		return []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}, true
	}
	return nil, false
}

func nodePortAddresses(list []string, fs *findings) NodePortAddresses {
	var addresses NodePortAddresses
	for i, s := range list {
		field := element("nodePortAddresses", i)
		if prefixes, ok := keyword(s); ok {
			if slices.Contains(list[:i], s) {
				fs.refuse(field, "%q: must be there only once", s)
			}
			addresses.Primary = addresses.Primary || s == "primary"
			addresses.Prefixes = append(addresses.Prefixes, prefixes...)
			continue
		}
		prefix, ok := parsePrefix(s)
		if !ok {
			fs.refuse(field, "%q: must be an address range such as 192.0.2.0/24, or primary, localhost or all", s)
			continue
		}
		addresses.Prefixes = append(addresses.Prefixes, prefix)
	}
	return addresses
}
