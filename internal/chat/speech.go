package chat

import (
	"strings"
	"sync"

	"muster"
	"muster/llm"
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
	case llm.Delta:
		s.delta(v)
	case llm.Reply:
		if !s.shown {
			s.say(words(v.Message))
		}
		s.end()
	}
}

func (s *Speech) delta(d llm.Delta) {
	switch {
	case d.Again:
		if s.shown {
			s.say(" ...")
		}
		s.end()
	case d.Text == "":
	default:
		if s.shown && d.Part != s.part {
			s.say("\n")
		}
		s.part = d.Part
		s.say(d.Text)
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
