package leftovers

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// deviceName is that of the dummy device on which the ipvs mode has the
// addresses of services, for the kernel to take in what is sent to them
// (pkg/proxy/ipvs, kube-proxy 1.8 to 1.37).
const deviceName = "kube-ipvs0"

// findDevice returns the device and its addresses, nil if there is none.
func findDevice() (netlink.Link, map[netip.Addr]bool, error) {
	device, err := netlink.LinkByName(deviceName)
	var none netlink.LinkNotFoundError
	switch {
	case errors.As(err, &none):
		return nil, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("look for device %s: %w", deviceName, err)
	}
	list, err := netlink.AddrList(device, netlink.FAMILY_ALL)
	if err != nil {
		return nil, nil, fmt.Errorf("list addresses of device %s: %w", deviceName, err)
	}
	addresses := make(map[netip.Addr]bool, len(list))
	for _, a := range list {
		if a.IPNet == nil {
			continue
		}
		if addr, ok := netip.AddrFromSlice(a.IP); ok {
			addresses[addr.Unmap()] = true
		}
	}
	return device, addresses, nil
}

func removeDevice(device netlink.Link) error {
	if kind := device.Type(); kind != "dummy" {
		return fmt.Errorf("device %s is of type %s, not dummy", deviceName, kind)
	}
	if err := netlink.LinkDel(device); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("delete device %s: %w", deviceName, err)
	}
	return nil
}
