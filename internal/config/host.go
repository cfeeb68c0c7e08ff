package config

import (
	"net/netip"
	"strconv"
	"strings"

	"muster"
	"muster/internal/lazyregexp"
)

// A Host is an entry of sandbox.network: a host that programs may reach, or many.
type Host struct {
	// Name is that of the host, in small letters; *.NAME is all below it.
	Name string
	// Port is the only one; "" is 80 and 443.
	Port string
	// Network has addresses of the host that are refused otherwise; the zero value has none.
	Network netip.Prefix
}

// hostPattern is a name, or *.NAME for all below it, with a port behind it or not.
var hostPattern = lazyregexp.New(`^(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$`)

// ParseHost parses NAME or *.NAME, with :PORT behind it or not, and with =NETWORK behind that for a name that leads
// into a private network: registry.corp=10.0.0.0/8.
func ParseHost(text string) (h Host, err error) {
	name, network, hasNetwork := strings.Cut(strings.ToLower(text), "=")
	if hasNetwork {
		if ip, err := netip.ParseAddr(network); err == nil {
			network += "/" + strconv.Itoa(ip.BitLen())
		}
		h.Network, err = netip.ParsePrefix(network)
	}
	if err != nil || !hostPattern().MatchString(name) {
		return Host{}, muster.Errorf(muster.Invalid, "%q is no host: name it like registry.npmjs.org, *.npmjs.org, "+
			"example.org:8443, or registry.corp=10.0.0.0/8 where it leads into that network", text)
	}
	h.Name, h.Port, _ = strings.Cut(name, ":")
	h.Network = h.Network.Masked()
	return h, nil
}
