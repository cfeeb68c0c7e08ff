package loop

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"muster/llm"
)

// Memory is a Conversation in memory only: for a subagent, and for programs that need no more. It is safe for
// concurrent use.
type Memory struct {
	prefix  llm.Request
	mu      sync.Mutex
	history *llm.History
}

// NewMemory starts a conversation. Every request is made of prefix, with the messages after its own.
func NewMemory(prefix llm.Request) *Memory {
	return &Memory{prefix: prefix, history: llm.NewHistory(prefix.Messages)}
}

// Say adds what the model is told next.
func (m *Memory) Say(parts ...llm.Part) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.history.Say(parts...)
}

// Messages returns the conversation so far.
func (m *Memory) Messages() []llm.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.history.Messages()
}

// Request returns what to send now.
func (m *Memory) Request(context.Context) (llm.Request, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if open := m.history.Unanswered(); len(open) > 0 {
		return llm.Request{}, fmt.Errorf("%d calls of the last reply have no result yet", len(open))
	}
	r := m.prefix
	r.Messages = m.history.Messages()
	return r, CheckSize(r.Messages)
}

// Replace makes messages the whole history, the prefix's own messages included.
func (m *Memory) Replace(_ context.Context, messages []llm.Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if open := m.history.Unanswered(); len(open) > 0 {
		return fmt.Errorf("%d calls of the last reply have no result yet", len(open))
	}
	m.history = llm.NewHistory(messages)
	return nil
}

// Append adds a reply.
func (m *Memory) Append(_ context.Context, r llm.Reply) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	parts := r.Message.Parts
	if r.Stop != llm.StopTools { // nobody will run them
		parts = slices.DeleteFunc(slices.Clone(parts), func(p llm.Part) bool { _, is := p.(llm.Call); return is })
	}
	m.history.Reply(parts...)
	return nil
}

// Answer adds the result of a call. With the last one they become one message, in the order of the calls.
func (m *Memory) Answer(_ context.Context, r llm.Result) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.history.Answer(r) {
		return fmt.Errorf("no open call has the id %q", r.ID)
	}
	return nil
}
