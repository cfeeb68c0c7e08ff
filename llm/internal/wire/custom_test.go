package wire

import (
	"encoding/json"
	"net/http"
	"testing"

	"muster/llm"
)

// asked keeps the last request, and answers nothing.
type asked struct {
	header http.Header
	body   map[string]json.RawMessage
}

func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	a.header = r.Header
	if err := json.NewDecoder(r.Body).Decode(&a.body); err != nil {
		return nil, err
	}
	return nil, http.ErrServerClosed
}

// What the user wants in each request stands over what the adapter sends.
func TestCustomRequests(t *testing.T) {
	p := NewPeer("http://h", "https://vendor", "m")
	p.Custom = Custom{Header: map[string]string{"x-team": "red", "authorization": "Basic own", "User-Agent": "mine"},
		Extra: map[string]json.RawMessage{"store": json.RawMessage("null"), "effort": json.RawMessage(`{"a":"<b>"}`)}}
	var got asked
	body := map[string]any{"model": "m", "store": false, "effort": "low", "text": "<b>"}
	header := http.Header{"Authorization": {"Bearer key"}}
	_, err := NewExchange(p, llm.Request{}, nil).Post(t.Context(), &http.Client{Transport: &got}, "http://h/", header, body, nil)
	if err == nil {
		t.Error("no error")
	}
	for name, want := range map[string]string{"X-Team": "red", "Authorization": "Basic own", "User-Agent": "mine",
		"Content-Type": "application/json"} {
		if got.header.Get(name) != want {
			t.Errorf("%s is %q", name, got.header.Get(name))
		}
	}
	if len(got.body) != 3 || string(got.body["effort"]) != `{"a":"<b>"}` || string(got.body["model"]) != `"m"` {
		t.Errorf("%s", got.body)
	}
}
