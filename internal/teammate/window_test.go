package teammate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/testing/tier"
	"muster/llm"
	"muster/llm/anthropic"
	"muster/llm/catalogue"
	"muster/llm/llmtest"
)

// narrow is a server of the Messages API whose model has a small window: what does not fit is refused, and each
// request is checked as the vendor checks it. It counts tokens in its own way.
type narrow struct {
	*testing.T
	window  int
	perByte float64 // tokens
	answer  func(llm.Request) llm.Reply

	requests, summaries, refused int
	sent, ideal                  float64 // tokens of all requests
}

// summaryWords stands in each request for a summary.
const summaryWords = "Answer with the summary alone"

// tokens are those of a text.
func (n *narrow) tokens(text string) float64 { return float64(len(text)) * n.perByte }

// RoundTrip checks a request and has it answered, without a network.
func (n *narrow) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	for _, problem := range llmtest.CheckMessages(r.Header, body) {
		n.Errorf("request %d: %s", n.requests, problem)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	w := httptest.NewRecorder()
	llmtest.Handler(n).ServeHTTP(w, r)
	return w.Result(), nil
}

// Reply answers one request, or refuses it.
func (n *narrow) Reply(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Reply, error) {
	n.requests++
	size, results, task := n.tokens(strings.Join(r.System, "")), []float64(nil), 0.0
	for _, s := range r.Tools {
		size += n.tokens(s.Name + s.Description + string(s.Schema))
	}
	prefix := size
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			var text string
			switch p := p.(type) {
			case llm.Text:
				text = p.Text
				if strings.HasPrefix(text, "<auto-claimed>") {
					task = n.tokens(text)
				}
			case llm.Call:
				text = p.Name + string(p.Input)
			case llm.Result:
				text = p.Text()
				results = append(results, n.tokens(text))
			}
			size += n.tokens(text)
		}
	}
	if size > float64(n.window) {
		n.refused++
		return llm.Reply{}, llm.Errorf(llm.ContextFull, "%d tokens > %d maximum", int(size), n.window)
	}
	n.sent += size
	if strings.Contains(r.Messages[len(r.Messages)-1].Parts.Text(), summaryWords) {
		n.summaries++
		reply, _ := says(strings.Repeat("We did this, then that. ", 150))(r)
		reply.Usage = llm.Usage{Input: int(size), Output: 900}
		return reply, nil
	}
	n.ideal += prefix + task + 1000
	for _, tokens := range results[max(0, len(results)-3):] {
		n.ideal += tokens
	}
	reply := n.answer(r)
	reply.Usage = llm.Usage{Input: int(size), Output: 50}
	return reply, nil
}

// model is the server's model, as a member's config has it.
func (n *narrow) model() llm.Model {
	return anthropic.New(anthropic.Options{Model: "some-model", BaseURL: "http://narrow.example", Key: "k",
		Known:  catalogue.Model{Provider: "anthropic", Name: "some-model", Window: n.window, MaxOutput: 1000},
		Client: &http.Client{Transport: n}})
}

// TestTwoHundredTurnsInASmallWindow has a conversation of 200 turns in a window of 20,000 tokens: no request is
// refused, the member knows after each compaction what it must know, and the cost stays near the ideal.
func TestTwoHundredTurnsInASmallWindow(t *testing.T) {
	for _, lines := range []int{5, 20, 40, 200}[:tier.Amount(1, 4)] { // of a result at least; it has at most five times as many
		t.Run(fmt.Sprint(lines), func(t *testing.T) { twoHundredTurns(t, lines) })
	}
}

// twoHundredTurns is the test for results of some size.
func twoHundredTurns(t *testing.T, least int) {
	const turns = 200
	live(t, "alice", func(l *life) {
		random := rand.New(rand.NewPCG(1, 2))
		for i := range 40 {
			lines := least + random.IntN(4*least)
			text := strings.Repeat(fmt.Sprintf("func f%d() { return something, that, has, words }\n", i), lines)
			l.must(os.WriteFile(filepath.Join(l.rows.dir, fmt.Sprintf("f%d.go", i)), []byte(text), 0o600))
		}
		l.create(board.Draft{Subject: "the parser", Description: "It reads the grammar of chapter seven."})
		done, compacted := 0, 0
		call := func(i int, name string, input map[string]any) llm.Part {
			data, err := json.Marshal(input)
			l.must(err)
			return llm.Call{ID: fmt.Sprintf("toolu_%d_%d", done, i), Name: name, Input: data}
		}
		n := &narrow{T: t, window: 20_000, perByte: 0.28}
		n.answer = func(r llm.Request) llm.Reply {
			opening := r.Messages[0].Parts.Text()
			if strings.Contains(opening, "[Conversation compressed]") && n.summaries > compacted {
				compacted = n.summaries
				for _, want := range []string{"You are 'alice'", "Task #1: the parser", "the grammar of chapter seven",
					"Never use </tabs>, only blanks.", "[ ] 2 write the grammar", "We did this"} {
					if !strings.Contains(opening, want) {
						l.Errorf("turn %d: %q is forgotten: %s", done, want, opening)
					}
				}
			}
			reply := llm.Reply{Stop: llm.StopTools, Message: llm.Message{Role: llm.Assistant}}
			if done++; done >= turns {
				reply.Stop, reply.Message.Parts = llm.StopEnd, llm.Parts{llm.Text{Text: "That is all."}}
				return reply
			}
			read := func(i int) llm.Part {
				return call(i, "read_file", map[string]any{"path": fmt.Sprintf("f%d.go", random.IntN(40))})
			}
			parts := llm.Parts{llm.Text{Text: fmt.Sprintf("Step %d: I look at the next file.", done)}}
			switch {
			case done == 1:
				parts = append(parts, call(0, "todo", map[string]any{"items": []map[string]any{
					{"id": "1", "text": "write the scanner", "status": "in_progress"},
					{"id": "2", "text": "write the grammar", "status": "pending"}}}))
				l.send(muster.MailMessage, muster.Lead, "alice", "Never use </tabs>, only blanks.")
			case done%10 == 0:
				parts = append(parts, read(0), read(1))
			case done%7 == 0:
				parts = append(parts, call(0, "write_file", map[string]any{"path": fmt.Sprintf("new%d.go", done),
					"content": strings.Repeat("a line of what is new\n", 100)}))
			case done%9 == 0:
				parts = append(parts, call(0, "bash", map[string]any{"command": fmt.Sprint("echo ", done)}))
			default:
				parts = append(parts, read(0))
			}
			reply.Message.Parts = parts
			return reply
		}
		l.config.Window, l.config.ReplyTokens, l.config.Limits.Turns = n.window, 1000, 10*turns
		l.config.Model = func(func() (muster.TaskID, int), func(time.Time, error)) (llm.Model, error) { return n.model(), nil }
		l.restart("alice")
		l.start()
		ratio := n.sent / n.ideal
		t.Logf("%d turns, %d requests, %d summaries, %d refused; %.0f tokens sent, %.0f ideal: %.2f times",
			done, n.requests, n.summaries, n.refused, n.sent, n.ideal, ratio)
		if done < turns || n.refused > 0 || compacted < 3 || ratio > 1.3 {
			t.Errorf("after %d turns %d compactions, %d requests refused, %.2f times the ideal; the life: %+v, %v", done, compacted,
				n.refused, ratio, l.end, l.err)
		}
	})
}
