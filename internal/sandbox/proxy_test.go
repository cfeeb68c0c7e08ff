package sandbox

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

// served returns a proxy to the hosts, all of which lead to one server, or are down, and a client that uses it.
func served(t *testing.T, hosts ...string) (*Proxy, *http.Client) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization")+r.Header.Get("Proxy-Connection") != "" {
			t.Error("the host was told what is for the proxy")
		}
		w.Header()["Of"] = []string{"the", "host"}
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://evil.com/", http.StatusFound)
		} else if r.URL.Path == "/echo" { // of all that follows
			c, rest, _ := http.NewResponseController(w).Hijack()
			_, _ = io.Copy(c, rest)
			_ = c.Close()
			return
		}
		_, _ = w.Write([]byte("hello from " + r.Host + r.URL.Path))
	}))
	t.Cleanup(server.Close)
	p, err := StartProxy(hosts)
	require.NoError(t, err)
	p.dial = func(ctx context.Context, address string, _ func(string) error) (net.Conn, error) {
		if address == "down.example.org:80" || address == "down.example.org:443" {
			return nil, errors.New("it is down")
		}
		return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}
	t.Cleanup(p.Close)
	socket := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(p.dir, socketName))
	}
	proxy := &url.URL{Scheme: "http", Host: "proxy", User: url.UserPassword("u", "p")}
	return p, &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), DialContext: socket}}
}

func TestProxyAllowsByName(t *testing.T) {
	p, c := served(t, "Example.org", "*.example.NET", "ports.example.com:8443", "down.example.org", "a.one:80")
	for address, want := range map[string]int{
		"http://example.org/a": 200, "http://EXAMPLE.org./": 200, "http://example.org:80/": 200,
		"http://example.org:81/": 403, "http://www.example.org/": 403, "http://notexample.org/": 403,
		"http://example.org.evil.com/": 403, "http://a.example.net/": 200, "http://a.b.example.net/": 200,
		"http://example.net/": 403, "http://.example.net/": 403, "http://ports.example.com:8443/": 200,
		"http://ports.example.com/": 403, "http://127.0.0.1/": 403, "http://[::1]/": 403, "http://a.one/": 200,
		"http://example.org@evil.com/": 403, "http://evil.com/example.org": 403, "http://evil.com/?example.org": 403,
		"http://example.org/away": 403, "http://down.example.org/": 502, "http://down.example.org:443/": 502,
	} {
		r, err := c.Get(address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		_ = r.Body.Close()
		if r.StatusCode != want || want == 200 && strings.Join(r.Header["Of"], " ") != "the host" {
			t.Errorf("%s: %d with %v, want %d", address, r.StatusCode, r.Header, want)
		}
	}
	// A tunnel is refused and allowed in the same way. Each of its directions is passed on until its own end.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go accept(l, filepath.Join(p.dir, socketName))
	waits, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer waits.Close()
	const rest = " HTTP/1.1\r\nHost: example.org:443\r\n\r\nGET /echo HTTP/1.1\r\nHost: x\r\n\r\nearly"
	for request, want := range map[string]int{"CONNECT example.org:443": 200, "CONNECT evil.com:443": 403,
		"CONNECT example.org:22": 403, "CONNECT nonsense": 400, "CONNECT :443": 400,
		"CONNECT down.example.org:443": 502, "GET /": 400, "GET https://example.org/": 400} {
		conn, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		_, _ = io.WriteString(conn, request+rest)
		require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		from := bufio.NewReader(conn)
		r, err := http.ReadResponse(from, &http.Request{Method: http.MethodConnect})
		require.NoError(t, err)
		_, _ = io.WriteString(conn, " and late")
		_ = conn.(*net.TCPConn).CloseWrite()
		if said, err := io.ReadAll(from); r.StatusCode != want || (string(said) == "early and late") != (want == 200) {
			t.Errorf("%s: %d %q, %v", request, r.StatusCode, said, err)
		}
		_ = conn.Close()
	}
	all := p.Refused()
	once := slices.Compact(slices.Sorted(slices.Values(all)))
	for host, want := range map[string]bool{"www.example.org": true, "example.org:81": true, "example.org:22": true,
		"evil.com": true, "example.org": false, "evil.com:443": false, "down.example.org": false} {
		if len(once) != len(all) || slices.Contains(all, host) != want {
			t.Errorf("refused: %q", all)
		}
	}
	p.Close()
	if _, err := os.Stat(p.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its directory: %v", err)
	}
}

// The connections that programs may have at once are few, and so are the bytes of the head of a request: they are
// muster's memory. What is too much waits, or is refused.
func TestProxyIsBounded(t *testing.T) {
	p, _ := served(t)
	dial := func() net.Conn {
		t.Helper()
		c := require.Value(net.Dial("unix", filepath.Join(p.dir, socketName)))(t)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	ask := func(c net.Conn, head string) (answer string) {
		require.Value(io.WriteString(c, "GET http://evil.com/ HTTP/1.1\r\nHost: evil.com\r\n"+head+"\r\n"))(t)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
		data := make([]byte, 12)
		n, _ := c.Read(data)
		return string(data[:n])
	}
	if got := ask(dial(), "Long: "+strings.Repeat("x", 2*maxHeader)+"\r\n"); got != "HTTP/1.1 431" {
		t.Errorf("a long head: %q", got)
	}
	var all []net.Conn
	for range maxConns {
		all = append(all, dial())
	}
	late := dial()
	if got := ask(late, ""); got != "" {
		t.Errorf("one connection too many: %q", got)
	}
	require.NoError(t, all[0].Close())
	require.NoError(t, late.SetReadDeadline(time.Now().Add(10*time.Second)))
	if answer := string(require.Value(io.ReadAll(io.LimitReader(late, 12)))(t)); answer != "HTTP/1.1 403" {
		t.Errorf("when another one has ended: %q", answer)
	}
}

// A forwarder ends as its command does, as a shell says it. The command has its input and output, and the address of
// the proxy in place of the user's.
func TestForward(t *testing.T) {
	t.Setenv("http_proxy", "http://proxy.of.the.user")
	path := filepath.Join(t.TempDir(), "in and out")
	require.NoError(t, os.WriteFile(path, []byte("in "), 0o600))
	both, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer both.Close()
	in, out, said := os.Stdin, os.Stdout, os.Stderr
	defer func() { os.Stdin, os.Stdout, os.Stderr = in, out, said }()
	os.Stdin, os.Stdout, os.Stderr = both, both, both
	const command = `read -r in; for url in "$http_proxy" "$https_proxy" "$HTTP_PROXY" "$HTTPS_PROXY"; do
case $url in http://127.0.0.1:[1-9]*) ;; *) echo "$url";; esac; done
echo "$in"; echo "$NO_PROXY $no_proxy" >&2; kill -9 $$`
	for command, want := range map[string]int{command: 128 + 9, "exit 3": 3, "exit 0": 0} {
		if exit, err := forward([]string{"/bin/sh", "-c", command}); exit != want || err != nil {
			t.Errorf("%s: %d, %v", command, exit, err)
		}
	}
	const local = "localhost,127.0.0.1,::1"
	if said, err := os.ReadFile(path); string(said) != "in in\n"+local+" "+local+"\n" {
		t.Errorf("it says %q, %v", said, err)
	}
	if exit, err := forward([]string{"/none"}); exit != 127 || err == nil {
		t.Errorf("what is not there: %d, %v", exit, err)
	}
}

// Whoever owns an allowed name chooses its address. One that is not public, or of this machine, is refused unless the
// user has named its network with the host, and is told with the host.
func TestProxyRefusesAddresses(t *testing.T) {
	const public, refused = true, false
	for address, want := range map[string]bool{
		"93.184.216.34": public, "2606:2800::1": public, "100.128.0.1": public, "198.17.0.1": public, "172.32.0.1": public,
		"2a00:1450:4001::1": public, "2001:4860:4860::8888": public, "2001:200::1": public,
		"127.0.0.1": refused, "127.1.2.3": refused, "::1": refused, "0.0.0.0": refused, "0.1.2.3": refused, "::": refused,
		"10.0.0.1": refused, "172.16.0.1": refused, "192.168.1.1": refused, "169.254.169.254": refused, "100.64.0.1": refused,
		"100.100.1.1": refused, "192.0.0.170": refused, "192.0.2.1": refused, "192.88.99.1": refused, "198.18.0.1": refused,
		"198.19.255.1": refused, "198.51.100.1": refused, "203.0.113.1": refused, "224.0.0.1": refused, "239.1.1.1": refused,
		"240.0.0.1": refused, "255.255.255.255": refused,
		"::ffff:93.184.216.34": refused, "::ffff:127.0.0.1": refused, "::5db8:d822": refused, "64:ff9b::5db8:d822": refused,
		"64:ff9b::a00:1": refused, "64:ff9b:1::a00:1": refused, "100::1": refused, "2001::1": refused, "2001:2::1": refused,
		"2001:10::1": refused, "2001:20::1": refused, "2001:db8::1": refused, "2002:a00:1::1": refused, "3fff::1": refused,
		"5f00::1": refused, "fc00::1": refused, "fd00::1": refused, "fe80::1": refused, "fec0::1": refused, "ff02::1": refused,
	} {
		for named, also := range map[string]bool{"a.example": false, "a.example=10.0.0.0/8": address == "10.0.0.1",
			"a.example=" + address: true, "b.example=0.0.0.0/0": false} {
			p, err := StartProxy([]string{"a.example", named})
			require.NoError(t, err)
			p.dial = func(_ context.Context, _ string, control func(string) error) (net.Conn, error) {
				return nil, control(net.JoinHostPort(address, "80"))
			}
			_, err = p.connect(t.Context(), "tcp", "a.example:80")
			isTold := slices.Equal(p.Refused(), []string{"a.example=" + address})
			if isAllowed := err == nil; isAllowed != (want || also) || isTold == isAllowed {
				t.Errorf("%s with %s: %v, told %q", address, named, err, p.Refused())
			}
			p.Close()
		}
	}
	own, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range own {
		ip := a.(*net.IPNet).IP
		if !isOfThisMachine(netip.MustParseAddr(ip.String())) {
			t.Errorf("%s is of this machine", ip)
		}
	}
	server := httptest.NewServer(nil)
	defer server.Close()
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	for network, want := range map[string]bool{"": false, "=127.0.0.0/8": false, "=" + host: true} {
		p, err := StartProxy([]string{"localhost:" + port, "localhost:" + port + network})
		require.NoError(t, err)
		c, err := p.connect(t.Context(), "tcp", "localhost:"+port)
		if (err == nil) != want {
			t.Errorf("a server of the user's with %q: %v", network, err)
		}
		if err == nil {
			_ = c.Close()
		}
		p.Close()
	}
	if _, err := StartProxy([]string{"*"}); err == nil {
		t.Error("* is a host")
	}
}

// A confined command reaches allowed hosts, and nothing else, through the forwarder.
func TestNetworkOfAConfinedCommand(t *testing.T) {
	tier.Needs(t, "/usr/bin/curl") // as the confined program finds it
	m, l := findNamespaces(t)
	p, _ := served(t, "example.org")
	argv, rules := p.Command([]string{"curl", "-sS", "http://example.org/a", "http://evil.com/"})
	want := "hello from example.org/amuster: the network is off for commands, and evil.com is not among the hosts " +
		"that the user allows (sandbox.network)\n"
	if got := run(t, m, l, append(System(), rules...), strings.Join(argv, " ")); got != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
}
