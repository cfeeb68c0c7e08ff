// Package proxies has the proxy of ALL_PROXY, which net/http does not read, for the requests that muster makes itself.
package proxies

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// ErrKind is in the error for an ALL_PROXY that names a kind of proxy that is not known.
var ErrKind = errors.New("proxies are of the kind http, https, socks5 or socks5h")

// choice is what the Proxy of an http.Transport is.
type choice = func(*http.Request) (*url.URL, error)

// Last returns what chooses the proxy of a request: as first does, or, where that chooses none, ALL_PROXY or all_proxy,
// unless NO_PROXY or no_proxy names the host. A nil first wants no proxies, and stays nil.
func Last(first choice) choice {
	all := cmp.Or(os.Getenv("ALL_PROXY"), os.Getenv("all_proxy"))
	if first == nil || all == "" {
		return first
	}
	last := fromAll(all, cmp.Or(os.Getenv("NO_PROXY"), os.Getenv("no_proxy")))
	return func(r *http.Request) (*url.URL, error) {
		if u, err := first(r); u != nil || err != nil {
			return u, err
		}
		return last(r.URL)
	}
}

// fromAll returns what chooses a proxy for all hosts but those of a list.
func fromAll(all, no string) func(*url.URL) (*url.URL, error) {
	// Desktops write socks:// for a proxy of version 5. A proxy without a scheme is one of HTTP.
	if kind, rest, ok := strings.Cut(all, "://"); ok && strings.EqualFold(kind, "socks") {
		all = "socks5://" + rest
	}
	c := httpproxy.Config{HTTPProxy: all, HTTPSProxy: all, NoProxy: no}
	choose := c.ProxyFunc()
	return func(asked *url.URL) (*url.URL, error) {
		u, err := choose(asked)
		if u != nil && !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, strings.ToLower(u.Scheme)) {
			return nil, fmt.Errorf("ALL_PROXY names a proxy of the kind %s: %w", u.Scheme, ErrKind)
		}
		return u, err
	}
}
