package loop

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster/internal/testing/require"
	"muster/llm"
)

func TestMemoryPutsResultsInTheOrderOfTheCalls(t *testing.T) {
	m := NewMemory(llm.Request{System: []string{"sys"}, CacheKey: "k",
		Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "before"}}}}})
	m.Say(llm.Text{Text: "go"})
	require.NoError(t, m.Append(t.Context(), calling("a", "b")))
	answer := func(id, text string) error {
		r := fine(text)
		r.ID = id
		return m.Answer(t.Context(), r)
	}
	require.NoError(t, answer("c2", "second"))
	m.Say(llm.Text{Text: "mail"})
	if _, err := m.Request(t.Context()); err == nil {
		t.Error("a request with an unanswered call")
	}
	if err := answer("c2", "twice"); err == nil {
		t.Error("answered twice")
	}
	require.NoError(t, answer("c1", "first"))
	r, err := m.Request(t.Context())
	if err != nil || r.CacheKey != "k" || !slices.Equal(r.System, []string{"sys"}) {
		t.Fatalf("%+v, %v", r, err)
	}
	wantOutline(t, m, "u: before, go", "a: a(), b()", "u: c1=first, c2=second, mail")
}

func TestMemoryLeavesItsPrefixAlone(t *testing.T) {
	parts := append(make([]llm.Part, 0, 9), llm.Text{Text: "before"})
	msgs := append(make([]llm.Message, 0, 9), llm.Message{Role: llm.User, Parts: parts})
	one, two := NewMemory(llm.Request{Messages: msgs}), NewMemory(llm.Request{Messages: msgs})
	for text, m := range map[string]*Memory{"one": one, "two": two} {
		m.Say(llm.Text{Text: text})
		require.NoError(t, m.Append(t.Context(), says(text)))
	}
	wantOutline(t, one, "u: before, one", "a: one")
	wantOutline(t, two, "u: before, two", "a: two")
	if got := outline(msgs); got != "u: before" {
		t.Errorf("the prefix became %q", got)
	}
}

// What providers insist on: roles alternate, the user begins, no message is empty, and what was sent before is a prefix
// of what is sent now.
func TestMemoryOnlyGrowsAndAlternates(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := NewMemory(llm.Request{})
		m.Say(llm.Text{Text: "go"})
		var before []llm.Message
		var stored string
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0:
				m.Say(llm.Text{Text: "mail"})
			case 1:
				_ = m.Append(t.Context(), says("words"))
			case 2:
				_ = m.Append(t.Context(), llm.Reply{Stop: llm.StopEnd, Message: llm.Message{Role: llm.Assistant}})
			case 3:
				_ = m.Append(t.Context(), calling("a", "b"))
				for _, id := range rapid.Permutation([]string{"c1", "c2"}).Draw(rt, "order") {
					require.NoError(rt, m.Answer(t.Context(), llm.Result{ID: id}))
				}
			}
			r := require.Value(m.Request(t.Context()))(rt)
			if got := outline(before); got != stored {
				rt.Errorf("a request that was handed out has changed: %s", cmp.Diff(stored, got))
			}
			for i, msg := range r.Messages {
				if len(msg.Parts) == 0 || (msg.Role == llm.User) != (i%2 == 0) {
					rt.Errorf("message %d: %+v", i, msg)
				}
			}
			for i, msg := range before {
				if d := cmp.Diff(msg.Parts, r.Messages[i].Parts[:len(msg.Parts)]); d != "" {
					rt.Error(d)
				}
			}
			before, stored = r.Messages, outline(r.Messages)
		}
	})
}

// Whatever its tools return, an agent holds a bounded amount of it, and every call has its answer.
func TestResultsAreBounded(t *testing.T) {
	for name, part := range map[string]llm.Part{
		"text":  llm.Text{Text: strings.Repeat("x", 1<<20)},
		"image": llm.Image{Media: "image/png", Data: make([]byte, 1<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			big := fakeTool{"big", true, func(context.Context, llm.Call, func(string)) (llm.Result, error) {
				return llm.Result{Parts: []llm.Part{part}}, nil
			}}
			var calls []llm.Part
			for i := range 100 {
				calls = append(calls, llm.Call{ID: fmt.Sprint(i), Name: "big"})
			}
			memory := NewMemory(llm.Request{})
			memory.Say(llm.Text{Text: "go"})
			a := Agent{Model: lines{{Message: llm.Message{Role: llm.Assistant, Parts: calls}, Stop: llm.StopTools}, says("done")},
				Tools: []llm.Tool{big}, Conversation: memory, Parallel: 8}
			require.Value(a.Run(t.Context()))(t)
			results := memory.Messages()[2].Parts
			if size := results.Size(); len(results) != 100 || size > MaxResults+100*(keptOfResult+500) {
				t.Errorf("%d results of %d bytes", len(results), size)
			}
			if text := results.Text() + results[99].(llm.Result).Text(); !strings.Contains(text, "are cut here") {
				t.Errorf("the last result says %.100q", text)
			}
		})
	}
}

// A conversation that is too large to be kept counts as one that the model's window does not hold.
func TestConversationIsBounded(t *testing.T) {
	memory := NewMemory(llm.Request{})
	for range 17 {
		memory.Say(llm.Text{Text: strings.Repeat("x", 1<<20)})
	}
	_, err := memory.Request(t.Context())
	if llm.KindOf(err) != llm.ContextFull || !strings.Contains(err.Error(), "the conversation has 17 MB, and may have 16 MB") {
		t.Error(err)
	}
}
