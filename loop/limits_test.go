package loop

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"muster/llm"
)

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
			a := Agent{Model: replies{{Message: llm.Message{Parts: calls}, Stop: llm.StopTools}, {Stop: llm.StopEnd}}.model(),
				Tools: []llm.Tool{big}, Conversation: memory, Parallel: 8}
			if _, err := a.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
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

// replies is what a model says, in order.
type replies []llm.Reply

// model returns a model that says it.
func (r replies) model() llm.Model { return &speaker{left: r} }

type speaker struct{ left replies }

func (s *speaker) Reply(context.Context, llm.Request, func(llm.Delta)) (llm.Reply, error) {
	next := s.left[0]
	s.left = s.left[1:]
	return next, nil
}
