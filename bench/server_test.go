//go:build linux

package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/internal/testing/wait"
	"muster/llm"
	"muster/llm/llmtest"
	"muster/llm/script"
)

// server is a stand-in for a model's server: it answers from a script and notes when it was asked.
type server struct {
	url   string
	pause time.Duration // before each reply

	mu     sync.Mutex
	asked  map[string][]visit // by member
	onEach func(who string, n int)
}

// visit is a request: when it arrived, when the reply to it had left, how long it was.
type visit struct {
	came, left time.Time
	bytes      int
}

// serve answers from a script.
func serve(tb testing.TB, words string) *server {
	tb.Helper()
	return serveModel(tb, need(script.Parse([]byte(words)))(tb).Model())
}

func serveModel(tb testing.TB, m llm.Model) *server {
	tb.Helper()
	s := &server{asked: map[string][]visit{}}
	h := llmtest.Handler(m)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := visit{came: time.Now()}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		v.bytes = len(body)
		var asker struct {
			Metadata struct {
				UserID string `json:"user_id"`
			}
			User string
		}
		_ = json.Unmarshal(body, &asker)
		who, _, _ := strings.Cut(asker.Metadata.UserID+asker.User, "@")
		if who == "" { // the key of the cache is that of a role: only the conversation tells who speaks
			who = identity(body)
			body = append(fmt.Appendf(nil, `{"user":"%s@bench",`, who), bytes.TrimPrefix(body, []byte("{"))...)
		}
		s.mu.Lock()
		n, each := len(s.asked[who]), s.onEach
		s.asked[who] = append(s.asked[who], v)
		s.mu.Unlock()
		if each != nil {
			each(who, n)
		}
		wait.Elapse(s.pause)
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, r)
		s.mu.Lock()
		s.asked[who][n].left = time.Now()
		s.mu.Unlock()
	}))
	tb.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	s.url = web.URL
	return s
}

// identity returns who speaks, as the conversation says: a request may have no field for it.
func identity(body []byte) string {
	_, rest, _ := bytes.Cut(body, []byte("You are '"))
	who, _, _ := bytes.Cut(rest, []byte("'"))
	return string(who)
}

func (s *server) env() []string {
	return []string{"ANTHROPIC_API_KEY=none", "ANTHROPIC_BASE_URL=" + s.url}
}

func (s *server) visits(who string) []visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]visit(nil), s.asked[who]...)
}

func (s *server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = map[string][]visit{}
}

// turns is a script in which the lead calls the shell so many times and then ends. Each call is another one: the same
// six times in a row would be a loop.
func turns(n int) string {
	var b strings.Builder
	b.WriteString("speakers:\n  lead:\n")
	for i := range n {
		fmt.Fprintf(&b, "    - do: [{bash: {command: \"true %d\"}}]\n", i)
	}
	b.WriteString("    - say: Done.\n")
	return b.String()
}
