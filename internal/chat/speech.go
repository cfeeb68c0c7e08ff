package chat

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"muster"
	"muster/llm"
	"muster/loop"
)

// Speech shows the lead's words while they arrive.
//
// Those of a lead in another process come twice: while they stream in, where any part may be missing, and as whole
// replies from the transcript. Both have the same words in the same order, and either may be first. What comes first is
// shown, and of the other only what is missing. Where the end of a stream is missing, later replies are shown when they
// are whole.
type Speech struct {
	Face Face

	mu    sync.Mutex
	part  int
	shown strings.Builder // of the reply that streams in
	// isOpen says that the face has text that is not flushed.
	isOpen bool

	isRemote bool // the lead is in another process
	// waiting are the replies that have streamed to their end and did not come whole yet: what was shown of each.
	waiting []string
	// known is how many replies were shown whole while their streams had not come to their ends yet.
	known int
}

// Emit shows what the models of a team in this process emit, as far as it is the lead's.
func (s *Speech) Emit(member muster.Name, v any) {
	if e, ok := v.(loop.Event); ok && member == muster.Lead {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.event(e)
	}
}

// event shows what streams in.
func (s *Speech) event(e loop.Event) {
	switch e := e.(type) {
	case loop.TextDelta:
		if s.known > 0 {
			return
		}
		if s.shown.Len() > 0 && e.Part != s.part {
			s.flush()
		}
		s.part = e.Part
		s.show(e.Text)
	case loop.ThinkingDelta:
		if s.known == 0 {
			s.Face.Think(e.Text)
			s.isOpen = true
		}
	case loop.ReplyDiscarded:
		if s.shown.Len() > 0 {
			s.show(" ...")
		}
		s.end()
	case loop.TurnEnded:
		switch {
		case s.known > 0:
			s.known--
			return
		case s.isRemote:
			s.waiting = append(s.waiting, s.shown.String())
		case s.shown.Len() == 0: // it did not stream
			s.show(plainText(e.Reply.Message))
		}
		s.end()
	}
}

// reply shows what is not shown yet of a reply.
func (s *Speech) reply(text string) {
	if len(s.waiting) > 0 { // its stream has ended, and that of the next reply may have begun
		rest, _ := cutShown(text, s.waiting[0])
		s.waiting = s.waiting[1:]
		if rest != "" {
			s.flush()
			s.stream(rest)
			s.flush()
		}
		return
	}
	rest, isContinued := cutShown(text, s.shown.String())
	if !isContinued {
		s.flush()
	}
	s.stream(rest)
	s.end()
	s.known++
}

// cutShown returns what follows in a reply on what was shown of it. ok is false, with the whole reply, where that is
// not its beginning, as after attaching in the middle of it. Spaces make no difference: a reply has fewer of them.
func cutShown(text, shown string) (rest string, ok bool) {
	rest = text
	for _, want := range shown {
		if unicode.IsSpace(want) {
			continue
		}
		rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
		got, size := utf8.DecodeRuneInString(rest)
		if got != want {
			return text, false
		}
		rest = rest[size:]
	}
	return rest, true
}

// show shows a piece of the reply that streams in.
func (s *Speech) show(text string) {
	s.stream(text)
	s.shown.WriteString(text)
}

// stream passes text to the face.
func (s *Speech) stream(text string) {
	if text != "" {
		s.Face.Stream(text)
		s.isOpen = true
	}
}

// end ends the reply that streams in.
func (s *Speech) end() {
	s.flush()
	s.shown.Reset()
	s.part = 0
}

// flush lets what follows begin on a row of its own.
func (s *Speech) flush() {
	if s.isOpen {
		s.Face.Flush()
	}
	s.isOpen = false
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
