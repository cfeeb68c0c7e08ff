package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"muster"
)

// A Proxy lets the programs of one call reach some hosts: a confined program has no network, and talks to the proxy
// through a socket in a directory (forward.go). The proxy looks the names up, so a program cannot choose the address.
type Proxy struct {
	dir    string
	hosts  []string
	dial   dialer
	server http.Server

	// mu guards the field below: a program may ask for several hosts at once.
	mu      sync.Mutex
	refused []string // hosts, each once
}

const (
	// socketName is the name of the proxy's socket in its directory.
	socketName = "s"
	// dialTimeout is how long the connection to a host may take.
	dialTimeout = 30 * time.Second
)

// StartProxy starts a proxy to the hosts: a name, *.NAME for all below it, or either with :PORT; without a port they
// are 80 and 443. Close ends it, with all its connections.
func StartProxy(hosts []string) (*Proxy, error) {
	return startProxy(hosts, (&net.Dialer{Timeout: dialTimeout, ControlContext: refusePrivate}).DialContext)
}

// dialer makes the connections of a proxy.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// startProxy is StartProxy with what makes its connections.
func startProxy(hosts []string, dial dialer) (*Proxy, error) {
	// The path of a socket may have 107 bytes.
	dir, err := os.MkdirTemp("", "muster-net-")
	if err != nil {
		return nil, errNoNetwork(err)
	}
	p := &Proxy{dir: dir, hosts: hosts, dial: dial}
	l, err := net.Listen("unix", filepath.Join(dir, socketName))
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, errNoNetwork(err)
	}
	// What a program sends is of no interest to the user.
	p.server = http.Server{Handler: p, ReadHeaderTimeout: dialTimeout, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = p.server.Serve(l) }()
	return p, nil
}

// errNoNetwork says that the system has not let a proxy start.
func errNoNetwork(err error) error {
	return muster.Errorf(muster.Unavailable, "the network of a command cannot be served: %w", err)
}

// Close ends the proxy. A nil one has ended.
func (p *Proxy) Close() {
	if p == nil {
		return
	}
	_ = p.server.Close() // connections that were taken over end with the programs that hold them
	_ = os.RemoveAll(p.dir)
}

// Dir is the directory with the socket.
func (p *Proxy) Dir() string { return p.dir }

// Refused returns the hosts that programs have asked for and that are not allowed, each once.
func (p *Proxy) Refused() []string {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.refused)
}

// ServeHTTP serves one request to the proxy: CONNECT, or a request with a whole URL.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, port := r.URL.Hostname(), cmp.Or(r.URL.Port(), "80")
	if r.Method == http.MethodConnect {
		var err error
		if host, port, err = net.SplitHostPort(r.Host); err != nil {
			http.Error(w, "muster: CONNECT needs HOST:PORT", http.StatusBadRequest)
			return
		}
	}
	if host == "" || r.Method != http.MethodConnect && r.URL.Scheme != "http" {
		http.Error(w, "muster: this is a proxy: ask it for a whole URL", http.StatusBadRequest)
		return
	}
	if !p.allows(host, port) {
		p.refuse(host, port)
		http.Error(w, "muster: the network is off for commands, and "+host+" is not among the hosts that the user "+
			"allows (sandbox.network)", http.StatusForbidden)
		return
	}
	if r.Method == http.MethodConnect {
		p.tunnel(w, r, net.JoinHostPort(host, port))
		return
	}
	p.forward(w, r)
}

// allows reports whether a host is one of those that the user allows.
func (p *Proxy) allows(host, port string) bool {
	// A name may end with a dot, and then is the same one.
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.ContainsFunc(p.hosts, func(allowed string) bool {
		name, its, hasPort := strings.Cut(strings.ToLower(allowed), ":")
		if hasPort && its != port || !hasPort && port != "80" && port != "443" {
			return false
		}
		if below, ok := strings.CutPrefix(name, "*"); ok && strings.HasPrefix(below, ".") {
			return strings.HasSuffix(host, below) && len(host) > len(below)
		}
		return host == name
	})
}

// refuse notes a host that was refused, with its port where that is none of the usual ones.
func (p *Proxy) refuse(host, port string) {
	if port != "80" && port != "443" {
		host = net.JoinHostPort(host, port)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// A program may try thousands.
	if len(p.refused) < 20 && !slices.Contains(p.refused, host) {
		p.refused = append(p.refused, host)
	}
}

// tunnel connects a program with a host.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request, address string) {
	far, err := p.dial(r.Context(), "tcp", address)
	if err != nil {
		http.Error(w, "muster: "+muster.PlainText(err), http.StatusBadGateway)
		return
	}
	defer far.Close()
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer near.Close()
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	// Either side may be first to say no more; the other may still have something to say.
	var both sync.WaitGroup
	both.Go(func() { copyHalf(far, buffered) })
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

// forward sends a plain request to its host, and the answer back.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request) {
	out := r.Clone(r.Context())
	out.RequestURI = ""
	for _, name := range []string{"Proxy-Connection", "Proxy-Authorization", "Connection"} {
		out.Header.Del(name)
	}
	// A redirect is for the program to follow, which has to ask for the next host.
	transport := &http.Transport{DialContext: p.dial, DisableKeepAlives: true}
	answer, err := transport.RoundTrip(out)
	if err != nil {
		http.Error(w, "muster: "+muster.PlainText(err), http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body)
}

// errPrivate says that a name leads into the user's own network.
var errPrivate = errors.New("the name leads to an address of this machine or of its own network, which is refused")

// Addresses of private networks that package netip does not know as such: RFC 6598, behind which providers and overlay
// networks such as Tailscale put machines, and the former site-local addresses of RFC 3879.
var privatePrefixes = []netip.Prefix{netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fec0::/10")}

// nat64 are the addresses that lead to the IPv4 address in their last four bytes (RFC 6052, RFC 8215).
var nat64 = []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48")}

// refusePrivate refuses an address of this machine or of a private network: whoever owns an allowed name chooses the
// address to which it leads.
func refusePrivate(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%q is no address", address)
	}
	ip := to.Addr().Unmap()
	contains := func(p netip.Prefix) bool { return p.Contains(ip) }
	if slices.ContainsFunc(nat64, contains) {
		bytes := ip.As16()
		ip = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	if ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast() ||
		slices.ContainsFunc(privatePrefixes, contains) || isOfThisMachine(ip) {
		return errPrivate
	}
	return nil
}

// isOfThisMachine reports whether an interface has the address.
func isOfThisMachine(ip netip.Addr) bool {
	all, _ := net.InterfaceAddrs() // without them the well-known addresses are refused all the same
	return slices.ContainsFunc(all, func(a net.Addr) bool {
		own, isNet := a.(*net.IPNet)
		return isNet && own.IP.Equal(ip.AsSlice())
	})
}
