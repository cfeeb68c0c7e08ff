package loop

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"muster/llm"
)

// Memory is a Conversation that is kept nowhere: for a subagent, and for programs that need no more. Safe for
// concurrent use.
type Memory struct {
	prefix  llm.Request
	mu      sync.Mutex
	msgs    []llm.Message
	open    []llm.Call    // of the last reply, while some are unanswered
	results []*llm.Result // of these, by call
	rest    []llm.Part    // what else came in meanwhile: it stands after the results
}

// NewMemory starts a conversation. Every request is made of prefix, with the messages after its own.
func NewMemory(prefix llm.Request) *Memory {
	return &Memory{prefix: prefix, msgs: slices.Clone(prefix.Messages)}
}

// Say adds what the model is told next.
func (m *Memory) Say(parts ...llm.Part) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.open) > 0 {
		m.rest = append(m.rest, parts...)
		return
	}
	m.put(llm.User, parts)
}

// Messages is the conversation so far.
func (m *Memory) Messages() []llm.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.msgs)
}

// Request is what to send now.
func (m *Memory) Request(context.Context) (llm.Request, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.open) > 0 {
		return llm.Request{}, fmt.Errorf("%d calls of the last reply have no result yet", len(m.open))
	}
	r := m.prefix
	r.Messages = slices.Clone(m.msgs)
	return r, nil
}

// Append adds a reply.
func (m *Memory) Append(_ context.Context, r llm.Reply) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	parts := r.Message.Parts
	if r.Stop != llm.StopTools { // nobody will run them
		parts = slices.DeleteFunc(slices.Clone(parts), func(p llm.Part) bool { _, is := p.(llm.Call); return is })
	}
	m.put(llm.Assistant, parts)
	m.open = llm.Message{Parts: parts}.Calls()
	m.results = make([]*llm.Result, len(m.open))
	return nil
}

// Answer adds the result of a call. With the last one they become one message, in the order of the calls.
func (m *Memory) Answer(_ context.Context, r llm.Result) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, c := range m.open {
		if c.ID == r.ID && m.results[i] == nil { // some servers give two calls the same id
			m.results[i] = &r
			m.close()
			return nil
		}
	}
	return fmt.Errorf("no open call has the id %q", r.ID)
}

func (m *Memory) close() {
	if slices.Contains(m.results, nil) {
		return
	}
	var parts []llm.Part
	for _, r := range m.results {
		parts = append(parts, *r)
	}
	parts = append(parts, m.rest...)
	m.open, m.results, m.rest = nil, nil, nil
	m.put(llm.User, parts)
}

// put adds parts to the last message if it has the role, else a message: roles alternate, and none is empty.
func (m *Memory) put(role llm.Role, parts []llm.Part) {
	if len(parts) == 0 {
		return
	}
	if n := len(m.msgs) - 1; n >= 0 && m.msgs[n].Role == role {
		m.msgs[n].Parts = append(slices.Clip(m.msgs[n].Parts), parts...) // what was handed out stays as it is
		return
	}
	m.msgs = append(m.msgs, llm.Message{Role: role, Parts: slices.Clip(parts)})
}
