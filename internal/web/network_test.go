package web

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"muster"
)

func TestChooseAnAddressForAPhone(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ all, route, asked, want, hint string }{
		{all: "192.168.1.23 172.17.0.1", route: "192.168.1.23", want: "192.168.1.23 [172.17.0.1]"},
		{all: "192.168.1.23 172.17.0.1", route: "192.168.1.23", asked: "172.17.0.1", want: "172.17.0.1 [192.168.1.23]"},
		{all: "10.0.0.7", want: "10.0.0.7 []"},
		{all: "10.0.0.7", route: "192.168.9.9", want: "10.0.0.7 []"}, // one that is gone
		{all: "10.0.0.7 10.1.0.7", hint: "--phone=10.0.0.7"},
		{all: "", hint: "connect it"},
		{all: "10.0.0.7", asked: "10.0.0.8", hint: "this machine has 10.0.0.7"},
		{all: "10.0.0.7", asked: "0.0.0.0", hint: "10.0.0.7"}, {all: "10.0.0.7", asked: "box", hint: "10.0.0.7"},
		{all: "", asked: "127.0.0.1", hint: "this machine has none"},
		{all: "10.0.0.7 fd00::2", route: "fd00::2", want: "fd00::2 [10.0.0.7]"},
	} {
		var all []netip.Addr
		for _, a := range strings.Fields(x.all) {
			all = append(all, netip.MustParseAddr(a))
		}
		route, _ := netip.ParseAddr(x.route)
		addr, others, err := choose(all, route, x.asked)
		if got := fmt.Sprint(addr, " ", others); err == nil && got != x.want || (err == nil) != (x.want != "") || !strings.Contains(muster.HintOf(err), x.hint) {
			t.Errorf("%+v: %s, %v, %q", x, got, err, muster.HintOf(err))
		}
	}
}
