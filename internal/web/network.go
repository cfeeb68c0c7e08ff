package web

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"

	"muster"
)

// PhoneAddress returns the address at which a phone of the local network reaches this machine: asked, or the one of the
// default route where asked is "". others are the further ones.
func PhoneAddress(ctx context.Context, asked string) (addr netip.Addr, others []netip.Addr, err error) {
	all, err := localAddresses()
	if err != nil {
		return addr, nil, muster.Errorf(muster.Unavailable, "the addresses of this machine cannot be read: %w", err)
	}
	return choose(all, defaultAddress(ctx), asked)
}

// localAddresses returns the private addresses of this machine, those of IPv4 first.
func localAddresses() (all []netip.Addr, err error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		addresses, err := i.Addrs()
		if err != nil {
			return nil, err
		}
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().IsPrivate() {
				all = append(all, p.Addr())
			}
		}
	}
	slices.SortStableFunc(all, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() })
	return slices.Compact(all), nil
}

// defaultAddress returns the address from which this machine reaches others, or none. It sends nothing: a connection of
// UDP has an address as soon as it has a route.
func defaultAddress(ctx context.Context) netip.Addr {
	for _, other := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} { // for documentation, by RFC 5737 and RFC 3849
		c, err := new(net.Dialer).DialContext(ctx, "udp", other)
		if err != nil {
			continue
		}
		own, ok := c.LocalAddr().(*net.UDPAddr)
		_ = c.Close() // nothing was sent
		if ok && own.AddrPort().Addr().Unmap().IsPrivate() {
			return own.AddrPort().Addr().Unmap()
		}
	}
	return netip.Addr{}
}

// choose returns the address for a phone, from all private ones and that of the default route.
func choose(all []netip.Addr, route netip.Addr, asked string) (addr netip.Addr, others []netip.Addr, err error) {
	var names []string
	for _, a := range all {
		names = append(names, a.String())
	}
	list := "this machine has " + strings.Join(names, ", ")
	if len(all) == 0 {
		list = "this machine has none"
	}
	if asked != "" {
		if addr, err = netip.ParseAddr(asked); err != nil || !slices.Contains(all, addr) {
			return addr, nil, muster.Errorf(muster.Invalid, "%q is no address of this machine in a local network",
				asked).WithHint("%s", list)
		}
	} else {
		switch {
		case slices.Contains(all, route):
			addr = route
		case len(all) == 1:
			addr = all[0]
		case len(all) == 0:
			return addr, nil, muster.Errorf(muster.Unavailable, "this machine has no address in a local network").
				WithHint("connect it to the network of the phone")
		default:
			return addr, nil, muster.Errorf(muster.Invalid, "it is not known which network the phone is in").
				WithHint("%s; choose one:  muster web --phone=%s", list, names[0])
		}
	}
	others = slices.DeleteFunc(slices.Clone(all), func(a netip.Addr) bool { return a == addr })
	return addr, others, nil
}
