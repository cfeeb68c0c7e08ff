package sandbox

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/internal/proc"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

// served returns a proxy to the hosts, all of which lead to one server, and a client that uses it.
func served(t *testing.T, hosts ...string) (*Proxy, *http.Client) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != "" {
			t.Error("the host was told what is for the proxy")
		}
		w.Header().Set("Of", "the host")
		_, _ = w.Write([]byte("hello from " + r.Host + r.URL.Path))
	}))
	t.Cleanup(server.Close)
	p, err := startProxy(hosts, func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	socket := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(p.Dir(), socketName))
	}
	proxy := &url.URL{Scheme: "http", Host: "proxy", User: url.UserPassword("u", "p")}
	return p, &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), DialContext: socket}}
}

func TestProxyAllowsByName(t *testing.T) {
	p, c := served(t, "example.org", "*.example.net", "ports.example.com:8443")
	for address, want := range map[string]bool{
		"http://example.org/a": true, "http://EXAMPLE.org./": true, "http://example.org:80/": true, "http://example.org:81/": false,
		"http://www.example.org/": false, "http://notexample.org/": false, "http://example.org.evil.com/": false,
		"http://a.example.net/": true, "http://a.b.example.net/": true, "http://example.net/": false, "http://.example.net/": false,
		"http://ports.example.com:8443/": true, "http://ports.example.com/": false, "http://127.0.0.1/": false, "http://[::1]/": false,
		"http://example.org@evil.com/": false, "http://evil.com/example.org": false, "http://evil.com/?example.org": false,
	} {
		r, err := c.Get(address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		_ = r.Body.Close()
		if got := r.StatusCode == http.StatusOK; got != want || want && r.Header.Get("Of") == "" {
			t.Errorf("%s: %d with %v, want it allowed: %v", address, r.StatusCode, r.Header, want)
		}
	}
	all := p.Refused()
	if once := slices.Compact(slices.Sorted(slices.Values(all))); len(once) != len(all) || !slices.Contains(all, "www.example.org") || !slices.Contains(all, "example.org:81") || slices.Contains(all, "example.org") {
		t.Errorf("refused: %q", all)
	}
	// A tunnel is refused and allowed in the same way.
	for host, want := range map[string]string{"example.org:443": "200", "evil.com:443": "403", "example.org:22": "403", "nonsense": "400"} {
		conn, err := net.Dial("unix", filepath.Join(p.Dir(), socketName))
		require.NoError(t, err)
		_, _ = conn.Write([]byte("CONNECT " + host + " HTTP/1.1\r\nHost: example.org:443\r\n\r\nGET /early HTTP/1.0\r\n\r\n"))
		require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
		said, err := io.ReadAll(conn)
		if !strings.HasPrefix(string(said), "HTTP/1.1 "+want) || strings.HasSuffix(string(said), "/early") != (want == "200") {
			t.Errorf("CONNECT %s: %q, %v", host, said, err)
		}
		_ = conn.Close()
	}
}

// Whoever owns an allowed name chooses its address: one of the user's own network is refused.
func TestProxyRefusesPrivateAddresses(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1:80": false, "[::1]:443": false, "10.0.0.1:80": false, "192.168.1.1:80": false,
		"169.254.169.254:80": false, "0.0.0.0:80": false, "[fe80::1]:80": false, "[fd00::1]:80": false, "[::ffff:127.0.0.1]:80": false,
		"224.0.0.1:80": false, "name:80": false, "93.184.216.34:443": true, "[2606:2800::1]:443": true} {
		if err := refusePrivate(t.Context(), "tcp", address, nil); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	p, err := StartProxy([]string{"localhost"})
	require.NoError(t, err)
	defer p.Close()
	server := httptest.NewServer(nil)
	defer server.Close()
	if c, err := p.dial(t.Context(), "tcp", server.Listener.Addr().String()); err == nil {
		_ = c.Close()
		t.Error("it reaches a server of the user's")
	}
}

// A confined command reaches allowed hosts, and nothing else, through the forwarder.
func TestNetworkOfAConfinedCommand(t *testing.T) {
	tier.Needs(t, "curl")
	tier.Needs(t, "python3")
	m, l := findNamespaces(t)
	p, _ := served(t, "example.org")
	argv, rules, err := WithNetwork([]string{"/bin/sh", "-c", `curl -sS http://example.org/a; echo; curl -sS http://evil.com/; echo
python3 -c 'import http.server' && (python3 -m http.server 8123 >/dev/null 2>&1 & for i in $(seq 100); do curl -s -o /dev/null http://127.0.0.1:8123/ && break; sleep 0.1; done; curl -sS -o /dev/null -w '%{http_code}\n' http://127.0.0.1:8123/)
kill -9 $$`}, p)
	require.NoError(t, err)
	s := proc.Spec{Argv: argv, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}}
	out := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(out)
	require.NoError(t, err)
	defer f.Close()
	s.Out = f
	c, err := m.Start(t.Context(), l, s, append(System(), rules...))
	require.NoError(t, err)
	exit, err := c.Wait()
	got, _ := os.ReadFile(out)
	if err != nil || exit != 128+9 {
		t.Errorf("it ended with %d, %v", exit, err)
	}
	want := "hello from example.org/a\nmuster: the network is off for commands, and evil.com is not among the hosts that the user allows (sandbox.network)\n\n200\n"
	if string(got) != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
}
