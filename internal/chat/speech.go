package chat

import (
	"strings"
	"sync"

	"muster"
	"muster/llm"
	"muster/loop"
)

// Speech shows the lead's words as they stream in. Its Emit is a team's.
type Speech struct {
	Face Face

	mu    sync.Mutex
	part  int
	shown bool // something of this reply
}

// Emit takes what a member's model says.
func (s *Speech) Emit(member muster.Name, v any) {
	if member != muster.Lead {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch v := v.(type) {
	case loop.TextDelta:
		if s.shown && v.Part != s.part {
			s.say("\n")
		}
		s.part = v.Part
		s.say(v.Text)
	case loop.ReplyDiscarded:
		if s.shown {
			s.say(" ...")
		}
		s.end()
	case loop.TurnEnded:
		if !s.shown {
			s.say(words(v.Reply.Message))
		}
		s.end()
	}
}

func (s *Speech) say(text string) {
	if text != "" {
		s.Face.Stream(text)
		s.shown = true
	}
}

func (s *Speech) end() {
	if s.shown {
		s.Face.Flush()
	}
	s.shown, s.part = false, 0
}

// words is the text of a message.
func words(m llm.Message) string {
	var all []string
	for _, p := range m.Parts {
		if t, ok := p.(llm.Text); ok && strings.TrimSpace(t.Text) != "" {
			all = append(all, strings.TrimSpace(t.Text))
		}
	}
	return strings.Join(all, "\n")
}
