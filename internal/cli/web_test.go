package cli

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/require"
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
