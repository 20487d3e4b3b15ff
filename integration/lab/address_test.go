package lab_test

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

func address(a netip.Addr) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}}
}
