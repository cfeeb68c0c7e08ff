//go:build linux

package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/llm/llmtest"
	"muster/llm/script"
)

// recorder is a stand-in for a vendor's server that keeps what it was asked.
type recorder struct {
	url string

	mu     sync.Mutex
	bodies map[string][][]byte // by member, in order
	paths  map[string]bool
	keys   map[string]bool
}

func serve(t *testing.T, words string) *recorder {
	t.Helper()
	s := require.Value(script.Parse([]byte(words)))(t)
	r := &recorder{bodies: map[string][][]byte{}, paths: map[string]bool{}, keys: map[string]bool{}}
	h := llmtest.Handler(s.Model())
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		body, err := io.ReadAll(in.Body)
		if err != nil {
			return
		}
		var asker struct {
			Metadata struct{ User_ID string }
			Key      string `json:"prompt_cache_key"`
			User     string
		}
		_ = json.Unmarshal(body, &asker)
		who, _, _ := strings.Cut(cmp.Or(asker.Metadata.User_ID, asker.User, asker.Key), "@")
		r.mu.Lock()
		r.bodies[who] = append(r.bodies[who], body)
		r.paths[in.Method+" "+in.URL.Path] = true
		r.keys[in.Header.Get("x-api-key")+in.Header.Get("Authorization")] = true
		r.mu.Unlock()
		in.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(out, in)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// marks are the moving breakpoints of the Messages API.
var marks = regexp.MustCompile(`,?"cache_control":\{[^{}]*\}`)

// head is what of a request the server may cache, in the order in which it does: tools and system, then the messages.
func head(t *testing.T, body []byte) (before string, messages []string) {
	t.Helper()
	var r struct {
		Tools, System, Instructions json.RawMessage
		Messages, Input             []json.RawMessage
	}
	require.NoError(t, json.Unmarshal(marks.ReplaceAll(body, nil), &r))
	for _, m := range append(r.Messages, r.Input...) {
		messages = append(messages, string(m))
	}
	if len(r.Tools) == 0 || len(messages) == 0 {
		t.Fatalf("no tools or no messages in %.2000s", body)
	}
	return string(r.Tools) + string(r.System) + string(r.Instructions), messages
}

// opening returns the first of the messages, behind the system prompt if that is one of them.
func opening(messages []string) string { return strings.Join(messages[:min(2, len(messages))], "") }

// grows checks that each request of a member begins with the whole of the one before, unless the conversation was made
// shorter in between.
func (r *recorder) grows(t *testing.T) {
	t.Helper()
	for who, bodies := range r.bodies {
		before, messages := head(t, bodies[0])
		for n, body := range bodies[1:] {
			b, m := head(t, body)
			if b != before {
				t.Errorf("%s: tools or system of request %d are not those of the one before", who, n+1)
			}
			if begins := opening(m); strings.Contains(begins, "[Conversation compressed]") && begins != opening(messages) {
				messages = m
				continue
			}
			if len(m) < len(messages) {
				t.Errorf("%s: request %d has %d messages, the one before %d", who, n+1, len(m), len(messages))
			}
			for i := range min(len(messages), len(m)) {
				if m[i] != messages[i] {
					t.Errorf("%s: message %d has changed in request %d:\n%s\nwas\n%s", who, i, n+1, m[i], messages[i])
				}
			}
			before, messages = b, m
		}
	}
}

// TestTheWire has the program talk to servers of both vendors' APIs.
func TestTheWire(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, path string
		flags, env func(url string) []string
		key        string
		marked     bool
	}{
		{"anthropic", "POST /v1/messages", func(string) []string { return nil },
			func(url string) []string { return []string{"ANTHROPIC_API_KEY=key-a", "ANTHROPIC_BASE_URL=" + url} }, "key-a", true},
		{"openai by the environment", "POST /v1/chat/completions", func(string) []string { return nil },
			func(url string) []string { return []string{"OPENAI_API_KEY=key-o", "OPENAI_BASE_URL=" + url + "/v1"} }, "Bearer key-o", false},
		{"chat", "POST /v1/chat/completions", func(url string) []string { return []string{"--model", "openai/stand-in@" + url + "/v1"} },
			func(string) []string { return nil }, "", false},
		{"responses", "POST /v1/responses", func(url string) []string { return []string{"--model", "openai-responses/stand-in@" + url + "/v1"} },
			func(string) []string { return nil }, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "anthropic" {
				tier.All(t)
			}
			t.Parallel()
			r := serve(t, three)
			w := newWorld(t, c.env(r.url)...)
			out := w.muster(0, append([]string{"run", "--team", "wired", "--check", "test -f README", "write three files"}, c.flags(r.url)...)...)
			w.has("stdout", out.stdout, "3 of 3 tasks landed on muster/wired", "checked with test -f README")
			w.landedOnce("muster/wired", "1", "2", "3")
			w.untouched()
			if got := w.git("show", "muster/wired:three.txt"); got != "three" {
				t.Errorf("three.txt is %q", got)
			}

			r.mu.Lock()
			defer r.mu.Unlock()
			if len(r.paths) != 1 || !r.paths[c.path] {
				t.Errorf("it asked %v, want %s alone", r.paths, c.path)
			}
			if len(r.keys) != 1 || !r.keys[c.key] {
				t.Errorf("the keys it sent are %v, want %q alone", r.keys, c.key)
			}
			if len(r.bodies["lead"]) < 3 || len(r.bodies["alice"])+len(r.bodies["bob"]) < 9 {
				t.Errorf("too few requests: lead %d, alice %d, bob %d", len(r.bodies["lead"]), len(r.bodies["alice"]), len(r.bodies["bob"]))
			}
			r.grows(t)
			for who, bodies := range r.bodies {
				most := 14 << 10
				if who == "lead" {
					most = 16 << 10
				}
				t.Logf("%s: first request %d bytes, last %d, %d requests", who, len(bodies[0]), len(bodies[len(bodies)-1]), len(bodies))
				if len(bodies[0]) > most {
					t.Errorf("the first request of %s has %d bytes, at most %d are allowed", who, len(bodies[0]), most)
				}
				if c.marked {
					for n, body := range bodies {
						if err := breakpoints(body); err != nil {
							t.Errorf("request %d of %s: %v", n, who, err)
						}
					}
				}
			}
		})
	}
}

// breakpoints checks that a request of the Messages API says what to keep: the first part of the system (with the tools
// before it) and the last message, in at most the four places that are allowed.
func breakpoints(body []byte) error {
	var r struct {
		System   []map[string]any
		Messages []struct{ Content []map[string]any }
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	marked := func(block map[string]any) bool { return block["cache_control"] != nil }
	last := r.Messages[len(r.Messages)-1].Content
	switch n := bytes.Count(body, []byte(`"cache_control":`)); {
	case n > 4:
		return fmt.Errorf("%d breakpoints, at most 4 are allowed", n)
	case !marked(r.System[0]):
		return fmt.Errorf("no breakpoint after tools and system")
	case !marked(last[len(last)-1]):
		return fmt.Errorf("no breakpoint at the last message")
	}
	return nil
}
