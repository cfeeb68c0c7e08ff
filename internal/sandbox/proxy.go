package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"muster"
	"muster/internal/config"
)

// A Proxy lets the programs of one call reach some hosts: a confined program has no network, and talks to the proxy
// through a socket in a directory (forward.go). The proxy looks the names up, so a program cannot choose the address.
type Proxy struct {
	dir    string // has the socket
	hosts  []config.Host
	dial   func(context.Context, string, func(address string) error) (net.Conn, error)
	server http.Server
	plain  httputil.ReverseProxy // of requests that are no CONNECT
	open   chan struct{}         // has an element for each connection of the programs

	// mu guards the field below: a program may ask for several hosts at once.
	mu      sync.Mutex
	refused []string // hosts, each once
}

const (
	// socketName is the name of the proxy's socket in its directory.
	socketName = "s"
	// dialTimeout is how long the connection to a host may take.
	dialTimeout = 30 * time.Second
	// maxConns is how many connections the programs may have at once, and maxHeader how many bytes the head of a
	// request. More connections wait.
	maxConns, maxHeader = 256, 64 << 10
)

// count lets the proxy accept no more connections while there are maxConns. A tunnel counts its own until its end.
func (p *Proxy) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		p.open <- struct{}{}
	case http.StateClosed:
		<-p.open
	}
}

// dialHost connects to an address. control decides over the very address that it connects to.
func dialHost(ctx context.Context, address string, control func(address string) error) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout, Control: func(_, to string, _ syscall.RawConn) error { return control(to) }}
	return d.DialContext(ctx, "tcp", address)
}

// StartProxy starts a proxy to the hosts, as config.ParseHost knows them. Close ends it, with all its connections. The
// error is Unavailable where ForwardMain was not called.
func StartProxy(hosts []string) (*Proxy, error) {
	if self == "" {
		return nil, muster.Errorf(muster.Unavailable, "the network of confined commands cannot be served").
			WithHint("call team.Guard first thing in main")
	}
	p := &Proxy{dial: dialHost, open: make(chan struct{}, maxConns)}
	for _, text := range hosts {
		h, err := config.ParseHost(text)
		if err != nil {
			return nil, err
		}
		p.hosts = append(p.hosts, h)
	}
	fail := func(err error) (*Proxy, error) {
		return nil, muster.Errorf(muster.Unavailable, "the network of a command cannot be served: %w", err)
	}
	var err error
	// The path of a socket may have 107 bytes.
	if p.dir, err = os.MkdirTemp("", "muster-net-"); err != nil {
		return fail(err)
	}
	// What a program sends is of no interest to the user.
	silent := log.New(io.Discard, "", 0)
	p.server = http.Server{Handler: p, ReadHeaderTimeout: dialTimeout, MaxHeaderBytes: maxHeader, ErrorLog: silent,
		ConnState: p.count}
	// A redirect is for the program to follow, which has to ask for the next host. Queries go on as they are.
	p.plain = httputil.ReverseProxy{ErrorHandler: refuseGateway, ErrorLog: silent,
		Transport: &http.Transport{DialContext: p.connect, DisableKeepAlives: true},
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.RawQuery = r.In.URL.RawQuery }}
	l, err := net.Listen("unix", filepath.Join(p.dir, socketName))
	if err != nil {
		_ = os.RemoveAll(p.dir)
		return fail(err)
	}
	go func() { _ = p.server.Serve(l) }()
	return p, nil
}

// Close ends the proxy.
func (p *Proxy) Close() {
	_ = p.server.Close() // connections that were taken over end with the programs that hold them
	_ = os.RemoveAll(p.dir)
}

// Refused returns the hosts that programs have asked for and that are not allowed, each once.
func (p *Proxy) Refused() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.refused)
}

// ServeHTTP serves one request to the proxy: CONNECT, or a request with a whole URL.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, port := r.URL.Hostname(), cmp.Or(r.URL.Port(), "80")
	isTunnel := r.Method == http.MethodConnect
	if isTunnel {
		host, port, _ = net.SplitHostPort(r.Host)
	}
	if host == "" || !isTunnel && r.URL.Scheme != "http" {
		http.Error(w, "muster: this is a proxy: ask it for a whole URL, or CONNECT to HOST:PORT", http.StatusBadRequest)
		return
	}
	if len(p.find(host, port)) == 0 {
		p.refuse(host, port, "")
		http.Error(w, "muster: the network is off for commands, and "+host+" is not among the hosts that the user "+
			"allows (sandbox.network)", http.StatusForbidden)
		return
	}
	if isTunnel {
		p.tunnel(w, r, net.JoinHostPort(host, port))
		return
	}
	p.plain.ServeHTTP(w, r)
}

// refuseGateway answers a request whose host cannot be reached.
func refuseGateway(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, "muster: "+muster.PlainText(err), http.StatusBadGateway)
}

// find returns those of the user's hosts that a host is one of.
func (p *Proxy) find(host, port string) (found []config.Host) {
	// A name may end with a dot, and then is the same one.
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, h := range p.hosts {
		below, isWild := strings.CutPrefix(h.Name, "*")
		isIt := host == h.Name || isWild && strings.HasSuffix(host, below) && len(host) > len(below)
		if isIt && (port == h.Port || h.Port == "" && (port == "80" || port == "443")) {
			found = append(found, h)
		}
	}
	return found
}

// refuse notes a host that was refused, with its port where that is none of the usual ones, and with its address where
// that is what was refused.
func (p *Proxy) refuse(host, port, address string) {
	if port != "80" && port != "443" {
		host = net.JoinHostPort(host, port)
	}
	host += address
	p.mu.Lock()
	defer p.mu.Unlock()
	// A program may try thousands.
	if len(p.refused) < 20 && !slices.Contains(p.refused, host) {
		p.refused = append(p.refused, host)
	}
}

// tunnel connects a program with a host.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request, address string) {
	far, err := p.connect(r.Context(), "tcp", address)
	if err != nil {
		refuseGateway(w, r, err)
		return
	}
	defer far.Close()
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { <-p.open }()
	defer near.Close()
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	join(near, buffered, far)
}

// join passes on what a connection says, which is read from a reader, to another one, and back. Either side may be
// first to say no more; the other may still have something to say.
func join(near net.Conn, said io.Reader, far net.Conn) {
	var both sync.WaitGroup
	both.Go(func() { copyHalf(far, said) })
	both.Go(func() { copyHalf(near, far) })
	both.Wait()
}

// copyHalf copies one direction of a connection, and tells its end to the receiver.
func copyHalf(to net.Conn, from io.Reader) {
	_, _ = io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// connect connects to one of the user's hosts: whoever owns its name chooses the address to which it leads. An address
// that is refused is noted with the host, as the setting would name both.
func (p *Proxy) connect(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, _ := net.SplitHostPort(address) // ServeHTTP, or the transport, has joined them
	hosts := p.find(host, port)
	return p.dial(ctx, address, func(address string) error {
		to, _ := netip.ParseAddrPort(address) // the zero address is refused
		ip := to.Addr().WithZone("")
		isNamed := func(h config.Host) bool {
			return h.Network.Contains(ip) && (h.Network.IsSingleIP() || !isOfThisMachine(ip))
		}
		if isPublic(ip) && !isOfThisMachine(ip) || slices.ContainsFunc(hosts, isNamed) {
			return nil
		}
		p.refuse(host, port, "="+ip.String())
		return fmt.Errorf("%s leads to %s, which is no public address or one of this machine: the user can allow it "+
			"with %[1]s=%[2]s", host, ip)
	})
}

// Addresses of IPv6 that are given out, and the networks of the registries of IANA that are for special purposes, or
// lead on to an address in them: RFC 6890 and what has followed. What package netip knows as not global is not among
// them.
var (
	given   = netip.MustParsePrefix("2000::/3")
	special = parsePrefixes(`0.0.0.0/8 100.64.0.0/10 192.0.0.0/24 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24
		192.88.99.0/24 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4
		2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20`)
)

func parsePrefixes(text string) (all []netip.Prefix) {
	for word := range strings.FieldsSeq(text) {
		all = append(all, netip.MustParsePrefix(word))
	}
	return all
}

// isPublic reports whether an address is one of the public network. The addresses of NAT64, among others, are not in
// the part of IPv6 that is given out.
func isPublic(ip netip.Addr) bool {
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && (ip.Is4() || given.Contains(ip)) &&
		!slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// isOfThisMachine reports whether an interface has the address, or it is a loopback.
func isOfThisMachine(ip netip.Addr) bool {
	all, _ := net.InterfaceAddrs() // without them the loopback is refused all the same
	return ip.IsLoopback() || ip.IsUnspecified() || slices.ContainsFunc(all, func(a net.Addr) bool {
		own, isNet := a.(*net.IPNet)
		return isNet && own.IP.Equal(ip.AsSlice())
	})
}
