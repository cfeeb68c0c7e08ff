//go:build linux

package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"muster/internal/testing/require"
	"muster/llm/llmtest"
	"muster/llm/script"
)

// vendor is a stand-in for a vendor's server, which counts what it was asked.
type vendor struct {
	url string

	mu              sync.Mutex
	calls           map[string]bool // method, path and key of those that came
	begun, answered int
	most            int // how many calls are answered; those after them wait until they are cut off. 0: all
}

func (v *vendor) counts() (begun, answered int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.begun, v.answered
}

// serve serves a script. A reply is counted as answered when the client has it all.
func serve(t *testing.T, words string) *vendor {
	t.Helper()
	parsed := require.Value(script.Parse([]byte(words)))(t)
	v, h := &vendor{calls: map[string]bool{}}, llmtest.Handler(parsed.Model())
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		body, err := io.ReadAll(in.Body)
		if err != nil {
			return
		}
		v.mu.Lock()
		v.begun++
		v.calls[in.Method+" "+in.URL.Path+" "+in.Header.Get("x-api-key")] = true
		isHeld := v.most > 0 && v.begun > v.most
		v.mu.Unlock()
		if isHeld {
			<-in.Context().Done()
			return
		}
		in.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(out, in)
		v.mu.Lock()
		v.answered++
		v.mu.Unlock()
	}))
	t.Cleanup(server.Close)
	v.url = server.URL
	return v
}

// TestTheWire has the program talk to a vendor's server. What it says there in each vendor's format, and that a request
// begins with the one before, are tested in llm and in internal/teammate.
func TestTheWire(t *testing.T) {
	t.Parallel()
	v := serve(t, three)
	w := newWorld(t, "ANTHROPIC_API_KEY=key-a", "ANTHROPIC_BASE_URL="+v.url)
	out := w.muster(0, "run", "--team", "wired", "--check", "test -f README", "write three files")
	w.has("stdout", out.stdout, "3 of 3 tasks landed on muster/wired", "checked with test -f README")
	w.landedOnce("muster/wired", "1", "2", "3")
	w.untouched()
	if got := w.git("show", "muster/wired:three.txt"); got != "three" {
		t.Errorf("three.txt is %q", got)
	}
	if begun, _ := v.counts(); begun < 12 || len(v.calls) != 1 || !v.calls["POST /v1/messages key-a"] {
		t.Errorf("it called %d times: %v", begun, v.calls)
	}
}
