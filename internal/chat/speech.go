package chat

import (
	"strings"
	"sync"

	"muster"
	"muster/llm"
	"muster/loop"
)

// Speech shows the lead's words while they arrive. Its Emit receives what all models of a team emit.
type Speech struct {
	Face Face

	mu       sync.Mutex
	part     int
	hasShown bool // something of this reply
}

// Emit shows the text of the lead and ignores other members. A reply that did not stream is shown whole.
func (s *Speech) Emit(member muster.Name, v any) {
	if member != muster.Lead {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch v := v.(type) {
	case loop.TextDelta:
		// Texts of one reply that have a tool call or a thought between them begin on lines of their own.
		if s.hasShown && v.Part != s.part {
			s.show("\n")
		}
		s.part = v.Part
		s.show(v.Text)
	case loop.ReplyDiscarded: // the model starts its reply again
		if s.hasShown {
			s.show(" ...")
		}
		s.end()
	case loop.TurnEnded:
		if !s.hasShown {
			s.show(plainText(v.Reply.Message))
		}
		s.end()
	}
}

// show passes text to the face.
func (s *Speech) show(text string) {
	if text != "" {
		s.Face.Stream(text)
		s.hasShown = true
	}
}

// end ends what was shown of a reply, so that the next line begins on a row of its own.
func (s *Speech) end() {
	if s.hasShown {
		s.Face.Flush()
	}
	s.hasShown, s.part = false, 0
}

// plainText returns the text of a message without its other parts.
func plainText(m llm.Message) string {
	var all []string
	for _, p := range m.Parts {
		if t, ok := p.(llm.Text); ok && strings.TrimSpace(t.Text) != "" {
			all = append(all, strings.TrimSpace(t.Text))
		}
	}
	return strings.Join(all, "\n")
}
