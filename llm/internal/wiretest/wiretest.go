// Package wiretest has what the tests of the adapters share: a vendor without sockets, streams, and golden requests.
package wiretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/llm"
)

// Vendor is the transport of a client whose requests Answer answers. It keeps what it was asked.
type Vendor struct {
	Answer http.HandlerFunc
	Bodies []string
	Last   *http.Request
}

// RoundTrip lets the vendor answer.
func (v *Vendor) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	v.Bodies, v.Last = append(v.Bodies, string(body)), r
	w := httptest.NewRecorder()
	v.Answer(w, r)
	return w.Result(), err
}

// Sent is the body of the last request.
func (v *Vendor) Sent() string { return v.Bodies[len(v.Bodies)-1] }

// Stream answers with a stream.
func Stream(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_, _ = io.WriteString(w, body)
	}
}

// User is a message of the user's.
func User(s string) llm.Message {
	return llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: s}}}
}

// Ask asks a model, without messages as if the user had said hello. It returns what was shown meanwhile, too.
func Ask(t *testing.T, m llm.Model, ms ...llm.Message) (r llm.Reply, shown []llm.Delta, err error) {
	t.Helper()
	if len(ms) == 0 {
		ms = []llm.Message{User("hello")}
	}
	r, err = m.Reply(t.Context(), llm.Request{Messages: ms}, func(d llm.Delta) {
		if d.Answer = nil; d != (llm.Delta{}) {
			shown = append(shown, d)
		}
	})
	return r, shown, err
}

// MustAsk is Ask, which must not fail.
func MustAsk(t *testing.T, m llm.Model, ms ...llm.Message) (llm.Reply, []llm.Delta) {
	t.Helper()
	r, shown, err := Ask(t, m, ms...)
	if err != nil {
		t.Fatal(err)
	}
	return r, shown
}

// Events is a stream of events, each given as its JSON; one that has a type is named by it.
func Events(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		var t struct{ Type string }
		if json.Unmarshal([]byte(e), &t) == nil && t.Type != "" {
			fmt.Fprintf(&b, "event: %s\n", t.Type)
		}
		fmt.Fprintf(&b, "data: %s\n\n", e)
	}
	return b.String()
}

// Golden compares a request with a file of testdata, because a change of it empties every cache. With update it writes
// the file.
func Golden(t *testing.T, name, request string, update bool) {
	t.Helper()
	var b bytes.Buffer
	err := json.Indent(&b, []byte(strings.TrimSpace(request)), "", " ")
	b.WriteByte('\n')
	file := filepath.Join("testdata", name)
	if err == nil && update {
		err = os.WriteFile(file, b.Bytes(), 0o644)
	}
	want, readErr := os.ReadFile(file)
	if err != nil || readErr != nil || b.String() != string(want) {
		t.Errorf("the request is not that of %s (%v, %v):\n%s", file, err, readErr, b.String())
	}
}
