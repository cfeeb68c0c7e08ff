package llmtest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster/internal/testing/require"
	"muster/llm/llmtest"
)

// piece is a text of so many bytes.
func piece(name string, bytes int, mark string) llmtest.Piece {
	return llmtest.Piece{Text: name + strings.Repeat("x", bytes-len(name)), Mark: mark}
}

func TestMarkCache(t *testing.T) {
	var c llmtest.MarkCache
	start := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	ask := func(after time.Duration, pieces ...llmtest.Piece) llmtest.Kept {
		at := start.Add(after)
		return c.Ask(llmtest.Prompt{Model: "m", Pieces: pieces}, at, at.Add(time.Second))
	}
	expect := func(what string, got llmtest.Kept, read, written, lasting int) {
		t.Helper()
		if got.Read != read || got.Written != written || got.Lasting != lasting {
			t.Errorf("%s: %+v, want %d read, %d written and %d for an hour", what, got, read, written, lasting)
		}
	}
	head, body := piece("tools", 100, "5m"), piece("facts", 50, "5m")
	expect("the first", ask(0, head, body, piece("alice", 10, "5m")), 0, 160, 0)
	expect("while no reply has begun", ask(0, head, body, piece("bob", 10, "5m")), 0, 160, 0)
	expect("another member", ask(time.Minute, head, body, piece("carol", 10, "5m")), 150, 10, 0)
	expect("other facts", ask(time.Minute, head, piece("other", 50, "5m")), 100, 50, 0)
	expect("the same again", ask(2*time.Minute, head, body, piece("carol", 10, "5m")), 160, 0, 0)
	expect("after it was used", ask(6*time.Minute, head, body, piece("carol", 10, "5m")), 160, 0, 0)
	expect("after five minutes", ask(12*time.Minute, head, body, piece("carol", 10, "5m")), 0, 160, 0)

	head.Mark, body.Mark = "1h", ""
	expect("for an hour", ask(time.Hour, head, body, piece("dave", 10, "5m")), 0, 60, 100)
	expect("half an hour later", ask(90*time.Minute, head, body, piece("erin", 10, "5m")), 100, 60, 0)

	// The end of the request before is found 19 pieces back and not 20, unless it is marked again.
	long := func(n int, old string) (all []llmtest.Piece) {
		all = append(all, piece("long", 1000, old))
		for i := range n {
			all = append(all, piece(fmt.Sprint(i), 10, ""))
		}
		all[n].Mark = "5m"
		return all
	}
	ask(2*time.Hour, piece("long", 1000, "5m"))
	expect("19 pieces", ask(2*time.Hour+time.Minute, long(19, "")...), 1000, 190, 0)
	expect("too many pieces", ask(2*time.Hour+time.Minute, long(21, "")...), 0, 1210, 0)
	expect("too many, but marked", ask(2*time.Hour+time.Minute, long(25, "5m")...), 1000, 250, 0)

	c = llmtest.MarkCache{Minimum: 1024}
	small, large := piece("small", 4000, "5m"), piece("large", 4100, "5m")
	ask(0, small)
	expect("too small to be kept", ask(time.Minute, small), 0, 0, 0)
	expect("large enough", ask(0, large), 0, 4100, 0)
	expect("and found", ask(time.Minute, large), 4100, 0, 0)
}

func TestPrefixCache(t *testing.T) {
	var c llmtest.PrefixCache
	start := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	ask := func(after time.Duration, key, text string) int {
		at := start.Add(after)
		return c.Ask(llmtest.Prompt{Key: key, Pieces: []llmtest.Piece{{Text: text}}}, at, at.Add(time.Second)).Read
	}
	same := strings.Repeat("a", 5000)
	for i, s := range []struct {
		after     time.Duration
		key, text string
		want      int
	}{
		{0, "team/coder", same + "alice", 0},
		{0, "team/coder", same + "bob", 0}, // no reply has begun
		{time.Minute, "team/coder", same + "carol", 1152 * 4},
		{time.Minute, "bob@team", same + "carol", 0},
		{time.Minute, "team/coder", strings.Repeat("a", 4090) + "b", 0},
		{7 * time.Minute, "team/coder", same, 0},
	} {
		if got := ask(s.after, s.key, s.text); got != s.want {
			t.Errorf("%d: %d bytes are read, want %d", i, got, s.want)
		}
	}
}

// The pieces stand in the order in which models read them, without marks, whatever the order of the fields.
func TestPrompt(t *testing.T) {
	for path, c := range map[string][2]string{
		"/v1/messages": {`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"text":"b","type":"text","cache_control":{"type":"ephemeral","ttl":"1h"}}]},
			{"role":"assistant","content":"c"}],"metadata":{"user_id":"alice"},"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"t"}]}`,
			`{"name":"t"} ; system{"text":"s","type":"text"} 5m; user{"text":"a","type":"text"} ; user{"text":"b","type":"text"} 1h; assistant"c" ; `},
		"/v1/chat/completions": {`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"}],"user":"u","tools":[{"type":"function"}]}`,
			`{"type":"function"} ; {"content":"s","role":"system"} ; {"content":"a","role":"user"} ; u`},
		"/v1/responses": {`{"input":[{"type":"message"}],"instructions":"s","prompt_cache_key":"k","user":"u","tools":[{"name":"t"}]}`,
			`{"name":"t"} ; "s" ; {"type":"message"} ; k`},
	} {
		p := require.Value(llmtest.NewPrompt(path, []byte(c[0])))(t)
		got := ""
		for _, x := range p.Pieces {
			got += x.Text + " " + x.Mark + "; "
		}
		if got += p.Key; got != c[1] {
			t.Errorf("%s: %s, want %s", path, got, c[1])
		}
	}
}
