package team

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"muster"
	"muster/internal/teammate"
	"muster/internal/text"
	"muster/internal/tool/agent"
	"muster/internal/transcript"
	"muster/llm"
)

// Said is one thing in a member's conversation, as people read it. Its text is a model's or a tool's, and may hold
// anything.
type Said struct {
	Pos  muster.Pos `json:"pos"` // the place in the transcript after the entry that it is part of
	At   float64    `json:"at"`  // Unix seconds
	Kind SaidKind   `json:"kind"`
	Tool string     `json:"tool,omitempty"` // of a call
	Call string     `json:"call,omitempty"` // the id of a call, and of the one that a result answers
	Text string     `json:"text"`
	// Input is what a call was given, as the model wrote it: that of a file tool tells what it changes.
	Input json.RawMessage `json:"-"`
	// IsError says that the tool has failed.
	IsError bool `json:"is_error,omitempty"`
	// Steps are the member's own list from here on, where the tool todo has taken one. nil: the list is as before.
	Steps []Step `json:"steps,omitzero"`
}

// Step is an item of a member's own list.
type Step struct {
	Text   string     `json:"text"`
	Status StepStatus `json:"status"`
}

// StepStatus says how far a step is.
type StepStatus string

// What a step can be.
const (
	StepPending    StepStatus = "pending"
	StepInProgress StepStatus = "in_progress"
	StepCompleted  StepStatus = "completed"
)

// SaidKind says whose words they are.
type SaidKind string

// The kinds of what is said.
const (
	SaidToIt   SaidKind = "in"     // what entered from outside: the task, mail, reminders
	SaidByIt   SaidKind = "text"   // the model's words
	SaidThink  SaidKind = "think"  // its thinking, where the model shows it
	SaidCall   SaidKind = "call"   // a call of a tool, in a few words
	SaidResult SaidKind = "result" // what a tool has answered
	SaidNote   SaidKind = "note"   // of the runtime, which no model reads
)

// Conversation yields a member's conversation after a position of its transcript, 0 for all, as it is now: a reply
// once it is complete, not while it streams (see Subscribe). An entry that cannot be read is an error with code
// Corrupt, and the sequence goes on. A member without a transcript has said nothing.
func (s Members) Conversation(ctx context.Context, name muster.Name, after muster.Pos) iter.Seq2[Said, error] {
	log := s.t.services().Store().Log()
	return func(yield func(Said, error) bool) {
		c := callsOf{find: func() map[string]llm.Call { return lastCalls(ctx, log, name, after) }}
		for e, err := range transcript.Read(ctx, log, name, after) {
			if err != nil {
				if !yield(Said{Pos: e.Pos}, err) {
					return
				}
				continue
			}
			for _, said := range c.saidIn(e) {
				if !yield(said, nil) {
					return
				}
			}
		}
	}
}

// HasConversation returns nil for a member, and for a helper that has worked for one: an agent such as a subagent or a
// reviewer, by its name. Errors: NotFound.
func (s Members) HasConversation(ctx context.Context, name muster.Name) error {
	_, err := s.Get(ctx, name)
	if _, _, isHelper := muster.HelpedBy(name); !isHelper || !errors.Is(err, muster.ErrNotFound) {
		return err
	}
	end, errTail := s.t.services().Store().Log().Tail(ctx, transcript.Stream(name), 0)
	if errTail == nil && end > 0 {
		return nil
	}
	return cmp.Or(errTail, err)
}

// callsOf knows the calls of the last reply, because a result has no more of its call than the id. The list of a
// member's steps is taken from its call and not from the text of the result: the text is made for the model, and
// another tool may print the same.
type callsOf struct {
	byID map[string]llm.Call        // nil: no reply was read yet
	find func() map[string]llm.Call // of the reply before all that is read
}

// lookBack is how many of the last entries may lie between a reply and the last result of its calls.
const lookBack = 100

// lastCalls returns the calls of the last reply up to a position. A reply may have several calls, whose results come
// one after the other, so readers stop between them and go on there.
func lastCalls(ctx context.Context, l muster.Log, name muster.Name, until muster.Pos) map[string]llm.Call {
	// Where this fails a list of steps is shown later, with the next call; the reading itself says what is wrong.
	from, err := l.Tail(ctx, transcript.Stream(name), lookBack)
	if err != nil || from >= until {
		return map[string]llm.Call{}
	}
	calls := map[string]llm.Call{}
	for e, err := range transcript.Read(ctx, l, name, from) {
		if err == nil && e.Pos > until {
			break
		}
		if err == nil && e.Kind == transcript.KindReply {
			calls = callsIn(e)
		}
	}
	return calls
}

func callsIn(e transcript.Entry) map[string]llm.Call {
	all := map[string]llm.Call{}
	for _, c := range e.Message.Calls() {
		all[c.ID] = c
	}
	return all
}

// steps returns the list that a call of todo has set, once its result says that it was taken, and nil for any other
// result. The whole list is in each call, so the last one is all there is to know.
func (c *callsOf) steps(r llm.Result) (all []Step) {
	if r.IsError { // the list is as it was before
		return nil
	}
	// Where reading began behind the reply, its calls are looked for once. Most readings begin with a reply.
	if c.byID == nil {
		c.byID = c.find()
	}
	// The text of the result is for the model. The call has the list itself.
	items, ok := agent.Steps(c.byID[r.ID])
	if !ok {
		return nil
	}
	all = []Step{} // a list that was emptied is one, too
	for _, x := range items {
		all = append(all, Step{x.Text, StepStatus(x.Status)})
	}
	return all
}

// saidIn returns what an entry of a transcript says. What is only for the model, such as how older parts were
// shortened, says nothing.
func (c *callsOf) saidIn(e transcript.Entry) (all []Said) {
	add := func(s Said) {
		if s.Text = strings.TrimSpace(s.Text); s.Text != "" || s.Kind == SaidCall {
			s.Pos, s.At = e.Pos, e.At
			all = append(all, s)
		}
	}
	if e.Kind == transcript.KindMark {
		add(Said{Kind: SaidNote, Text: e.Text})
	}
	if e.Kind == transcript.KindReply {
		c.byID = callsIn(e)
	}
	// Mail reads like mail. The text of the message is the same in the form for the model.
	for _, m := range e.Delivered {
		add(Said{Kind: SaidToIt, Text: mailText(m)})
	}
	if e.Message == nil || len(e.Delivered) > 0 {
		return all
	}
	for _, p := range e.Message.Parts {
		switch p := p.(type) {
		case llm.Text:
			if e.Kind == transcript.KindReply {
				add(Said{Kind: SaidByIt, Text: p.Text})
			} else {
				add(Said{Kind: SaidToIt, Text: text.WithoutTags(p.Text)})
			}
		case llm.Thinking:
			add(Said{Kind: SaidThink, Text: p.Text})
		case llm.Call:
			add(Said{Kind: SaidCall, Tool: p.Name, Call: p.ID, Text: teammate.Gist(p), Input: p.Input})
		case llm.Result:
			words := p.Text()
			// The tags in other results may be those of a file.
			if strings.HasPrefix(words, "<auto-claimed>") || strings.Contains(words, "\n<team-rules>\n") {
				words = text.WithoutTags(words)
			}
			add(Said{Kind: SaidResult, Call: p.ID, Text: words, IsError: p.IsError, Steps: c.steps(p)})
		}
	}
	return all
}

func mailText(m muster.Message) string {
	lines := []string{fmt.Sprintf("from %s: %s", m.From, strings.TrimSpace(m.Content))}
	if m.Plan != "" && !strings.Contains(m.Content, m.Plan) {
		lines = append(lines, m.Plan)
	}
	if m.Feedback != "" && !strings.Contains(m.Content, m.Feedback) {
		lines = append(lines, m.Feedback)
	}
	return strings.Join(lines, "\n")
}

// ToolCall is one call of a tool in a member's conversation, whole. Its texts are a model's and a tool's, and may hold
// anything.
type ToolCall struct {
	Tool  string          `json:"tool"`
	Input json.RawMessage `json:"input"`
	// Output is what the tool has answered, as text; HasEnded says that it has answered.
	Output   string `json:"output"`
	HasEnded bool   `json:"has_ended"`
	// IsError says that the tool has failed.
	IsError bool `json:"is_error,omitempty"`
}

// Call returns a call in a member's conversation by its id, which the events of tools have. The error is NotFound where
// the conversation does not have it.
func (s Members) Call(ctx context.Context, name muster.Name, id string) (c ToolCall, err error) {
	isFound := false
	for e, err := range transcript.Read(ctx, s.t.services().Store().Log(), name, 0) {
		if err != nil || e.Message == nil { // what cannot be read is named by muster doctor
			continue
		}
		for _, p := range e.Message.Parts {
			switch p := p.(type) {
			case llm.Call:
				if p.ID == id {
					c, isFound = ToolCall{Tool: p.Name, Input: p.Input}, true
				}
			case llm.Result:
				if p.ID == id && isFound {
					c.Output, c.HasEnded, c.IsError = p.Text(), true, p.IsError
				}
			}
		}
	}
	if !isFound {
		return c, muster.Errorf(muster.NotFound, "the conversation of %s does not have that call of a tool", name)
	}
	return c, nil
}
