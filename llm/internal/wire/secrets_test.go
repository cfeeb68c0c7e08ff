package wire

import (
	"net/http"
	"strings"
	"testing"
)

// A server that redirects repeats the query that it was asked with, and a fragment or an error in a good answer's place
// shows the URL too. The rest of a URL is shown, because people must find their mistake in it.
func TestErrorsShowURLsWithoutSecrets(t *testing.T) {
	location := func(to string) http.Header { return http.Header{"Location": {to}} }
	for _, c := range []struct {
		url  string
		err  func(Peer) error
		says string
	}{
		{"https://h/v1",
			func(p Peer) error { return p.errNotStream(307, location("https://u:SECRET@other/v2?key=SECRET")) },
			"https://h/v1 redirects to https://other/v2:"},
		{"https://h/v1", func(p Peer) error { return p.errNotStream(307, location("/v2?key=SECRET#SECRET")) },
			"https://h/v1 redirects to /v2:"},
		{"https://h/v1", func(p Peer) error { return p.errNotStream(307, location("https://u:SECRET@other:x/")) },
			"https://h/v1 redirects to another URL:"},
		{"https://h/v1", func(p Peer) error { return p.errNotStream(307, nil) }, "https://h/v1 redirects to another URL:"},
		{"https://h/v1#SECRET", func(p Peer) error { return p.errorForResponse(404, nil, nil) }, "https://h/v1 does not know"},
		{"https://h/v1?key=SECRET", func(p Peer) error {
			return p.errorForResponse(400, nil, []byte(`{"error":{"code":"model_not_found","message":"none"}}`))
		}, "https://h/v1 does not know"},
	} {
		err := c.err(NewPeer(c.url, "https://vendor", "m"))
		if err == nil || strings.Contains(err.Error(), "SECRET") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.url, err, c.says)
		}
	}
}
