package cli

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"muster"
	"muster/internal/testing/require"
	"muster/internal/web"
)

// The address is the first line, the page answers there, and Ctrl-C is the way to end it and no failure.
func TestWebServesUntilInterrupted(t *testing.T) {
	w := newWorld(t, "web")
	r, out := io.Pipe()
	w.app.Stdout = out
	ctx, interrupt := context.WithCancelCause(t.Context())
	defer interrupt(nil)
	over := make(chan int, 1)
	go func() { over <- w.app.Run(ctx); out.Close() }()
	url, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatalf("%q, %v\n%s", url, err, w.err.String())
	}
	if !strings.HasPrefix(url, "http://127.0.0.1:") || !strings.Contains(url, "/?token=") {
		t.Fatalf("%q", url)
	}
	res := require.Value(http.DefaultTransport.RoundTrip(require.Value(http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSpace(url), nil))(t)))(t)
	res.Body.Close()
	if res.StatusCode != http.StatusSeeOther || len(res.Cookies()) != 1 {
		t.Errorf("%s, cookies %v", res.Status, res.Cookies())
	}
	interrupt(muster.CauseUser)
	if code := <-over; code != 0 || !strings.Contains(w.err.String(), "Ctrl-C ends the page") {
		t.Errorf("exit code %d\n%s", code, w.err.String())
	}
}

// A phone is let in beside the page on this machine, until the command ends. The terminal says what happens.
func TestWebServesAPhone(t *testing.T) {
	w := newWorld(t, "web")
	var said strings.Builder
	var mu sync.Mutex
	w.app.Stderr = writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return said.Write(p)
	})
	o := require.Value(w.app.open(t.Context()))(t)
	defer o.close()
	s := pageOf(w.app, o)
	listen := func() net.Listener { return require.Value(web.Listen(t.Context(), "127.0.0.1:0"))(t) }
	here, there := listen(), listen()
	d := newPhoneDoor(w.app, s, there, []netip.Addr{netip.MustParseAddr("10.0.0.7")})
	ctx, interrupt := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- d.serve(ctx, func(ctx context.Context) error { return s.Serve(ctx, here) }) }()
	get := func(url string) int {
		r := require.Value(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))(t)
		res := require.Value(http.DefaultTransport.RoundTrip(r))(t)
		res.Body.Close()
		return res.StatusCode
	}
	d.invite()
	mu.Lock()
	_, url, _ := strings.Cut(said.String(), "\nhttp")
	mu.Unlock()
	url, _, _ = strings.Cut("http"+url, "\n")
	if code := get(url); code != http.StatusSeeOther {
		t.Errorf("the phone: %d", code)
	}
	if code := get(s.URL(here)); code != http.StatusSeeOther {
		t.Errorf("the page on this machine: %d", code)
	}
	interrupt()
	require.NoError(t, <-over)
	d.happened(web.PhoneIdle)
	d.happened(web.PhoneClosed)
	for _, want := range []string{"for one phone on this network, where others can listen", "another network: muster web --phone=10.0.0.7", "muster: a phone is paired",
		"muster: the pairing has ended: 15 minutes without use\n        a new code: muster web --phone\n", "five wrong codes came from the network"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, said.String())
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
