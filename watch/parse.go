package watch

import (
	"errors"
	"fmt"
	"net/netip"

	netutils "k8s.io/utils/net"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// parseAddr reads an IP address as kube-proxy does: leading zeros are allowed
// and decimal, because old objects hold them, and an IPv4 address mapped into
// IPv6 is an IPv4 address.
func parseAddr(s string) (netip.Addr, error) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return a.Unmap(), nil
	}
	a, ok := netip.AddrFromSlice(netutils.ParseIPSloppy(s))
	if !ok {
		return netip.Addr{}, fmt.Errorf("%q is not an IP address", s)
	}
	return a.Unmap(), nil
}

// parseAddrOf is parseAddr of an address that has to be of family f.
func parseAddrOf(f model.Family, s string) (netip.Addr, error) {
	a, err := parseAddr(s)
	if err != nil {
		return netip.Addr{}, err
	}
	if model.FamilyOf(a) != f {
		return netip.Addr{}, fmt.Errorf("%s is not an %v address", a, f)
	}
	return a, nil
}

// parsePrefix reads a CIDR with the same leniency, and clears the bits beyond
// its length.
func parsePrefix(s string) (netip.Prefix, error) {
	_, network, err := netutils.ParseCIDRSloppy(s)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is not a CIDR", s)
	}
	a, _ := netip.AddrFromSlice(network.IP)
	bits, size := network.Mask.Size()
	// Of an IPv4 range mapped into IPv6, what is left is 96 bits shorter.
	return netip.PrefixFrom(a.Unmap(), bits-(size-a.Unmap().BitLen())), nil
}

var errPortRange = errors.New("not between 1 and 65535")

// parsePort checks the range of a port.
func parsePort(n int32) (uint16, error) {
	if n < 1 || n > 65535 {
		return 0, fmt.Errorf("%d is %w", n, errPortRange)
	}
	return uint16(n), nil
}
