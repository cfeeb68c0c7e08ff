package team

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"muster"
	"muster/internal/teammate"
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
	Text string     `json:"text"`
	// IsError says that the tool has failed.
	IsError bool `json:"is_error,omitempty"`
}

// SaidKind says whose words they are.
type SaidKind string

// The kinds of what is said.
const (
	SaidToIt   SaidKind = "in"     // what entered from outside: the task, mail, reminders
	SaidByIt   SaidKind = "text"   // the model's words
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
		for e, err := range transcript.Read(ctx, log, name, after) {
			if err != nil {
				if !yield(Said{Pos: e.Pos}, err) {
					return
				}
				continue
			}
			for _, said := range saidIn(e) {
				if !yield(said, nil) {
					return
				}
			}
		}
	}
}

// saidIn returns what an entry of a transcript says. What is only for the model, such as how older parts were
// shortened, says nothing.
func saidIn(e transcript.Entry) (all []Said) {
	add := func(s Said) {
		if s.Text = strings.TrimSpace(s.Text); s.Text != "" || s.Kind == SaidCall {
			s.Pos, s.At = e.Pos, e.At
			all = append(all, s)
		}
	}
	if e.Kind == transcript.KindMark {
		add(Said{Kind: SaidNote, Text: e.Text})
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
			kind := SaidToIt
			if e.Kind == transcript.KindReply {
				kind = SaidByIt
			}
			add(Said{Kind: kind, Text: p.Text})
		case llm.Call:
			add(Said{Kind: SaidCall, Tool: p.Name, Text: teammate.Gist(p)})
		case llm.Result:
			add(Said{Kind: SaidResult, Text: p.Text(), IsError: p.IsError})
		}
	}
	return all
}

// mailText returns a mail as people read it: who has written, and what, with the plan, the decision and its words.
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
