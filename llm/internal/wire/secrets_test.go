package wire

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"muster/llm"
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

// A server that quotes the key, as it is or in base64, whole or cut, says it to nobody.
func TestErrorsDoNotQuoteTheKey(t *testing.T) {
	const key = "sk-0123456789abcdefghijklmnopqrstuv"
	for name, body := range map[string]string{
		"as it is":  `{"error":{"message":"no: Bearer ` + key + `"}}`,
		"in base64": `{"error":{"message":"no: ` + base64.StdEncoding.EncodeToString([]byte("me:"+key)) + `"}}`,
		"cut":       strings.Repeat("x", 280) + key,
		"of a URL":  `{"error":{"message":"no: query-0123456789"}}`,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, body)
		}))
		x := NewExchange(NewPeer(server.URL, "https://vendor", "m"), llm.Request{}, nil)
		header := http.Header{"Authorization": {"Bearer " + key}}
		_, err := x.Post(t.Context(), new(http.Client), server.URL+"/?key=query-0123456789", header, struct{}{}, nil)
		server.Close()
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != llm.Denied || e.Status != http.StatusUnauthorized ||
			!strings.Contains(err.Error(), "[secret]") || strings.Contains(err.Error(), "0123456789") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
