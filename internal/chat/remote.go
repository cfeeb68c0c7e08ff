package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"muster"
	"muster/loop"
	"muster/team"
)

// remoteLead is a lead that lives in another process. What the user types is mailed to it. It cannot be told to end
// from here, and whether it waits for the user cannot be seen, so the user may write at any time.
type remoteLead struct{ *team.Attachment }

// Interrupt returns false: whether it can be interrupted is known later. See interruptRemote.
func (remoteLead) Interrupt() bool { return false }

// Close does nothing: the lead goes on.
func (remoteLead) Close() {}

// Resting reports true, so that no line waits for the lead.
func (remoteLead) Resting() (resting, done bool) { return true, false }

// Changed returns nil, which never receives.
func (remoteLead) Changed() <-chan struct{} { return nil }

// Attach makes the session one with a lead in another process. Leaving it does not end the run.
func (s *Session) Attach(a *team.Attachment) {
	s.Lead, s.Over, s.replies = remoteLead{a}, a.Over(), a.Replies()
	s.Remote, s.HasBegun, s.WaitForLead = true, true, false
	s.speech.face = s.Face
}

// interruptRemote asks the lead in another process to end its turn, and says later what came of it. more is what else
// the user can do.
func (s *Session) interruptRemote(more string) {
	lead, is := s.Lead.(remoteLead)
	if !is {
		return
	}
	lead.Attachment.Interrupt(func(err error) {
		text := "stopped: the lead waits for you, the team works on"
		if err != nil {
			text = muster.PlainText(err)
		}
		s.Face.Print(text + " (" + more + ")")
	})
}

// remoteSpeech shows the words of a lead in another process. They come twice: while they stream in, where any part may
// be missing, and as whole replies from the transcript. Either may come first. Each word is shown once.
type remoteSpeech struct {
	face  Face
	part  int
	shown strings.Builder // of the reply that streams in
	// isOpen says that the face has text that is not flushed.
	isOpen bool
	// waiting are the replies that have streamed to their end and did not come whole yet: what was shown of each.
	waiting []string
	// known is how many replies were shown whole while their streams had not come to their ends yet.
	known int
}

// The stream and the replies are two sequences of the same words in the same order. Of one reply, that which comes
// first is shown, and of the other only what is missing. The transcript has every reply; where the end of a stream is
// missing, later replies are shown when they are whole.

// event shows what streams in.
func (s *remoteSpeech) event(e loop.Event) {
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
			s.face.Think(e.Text)
			s.isOpen = true
		}
	case loop.ReplyDiscarded:
		if s.shown.Len() > 0 {
			s.show(" ...")
		}
		s.end()
	case loop.TurnEnded:
		if s.known > 0 {
			s.known--
			return
		}
		s.waiting = append(s.waiting, s.shown.String())
		s.end()
	}
}

// reply shows what is not shown yet of a reply.
func (s *remoteSpeech) reply(text string) {
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
func (s *remoteSpeech) show(text string) {
	s.stream(text)
	s.shown.WriteString(text)
}

// stream passes text to the face.
func (s *remoteSpeech) stream(text string) {
	if text != "" {
		s.face.Stream(text)
		s.isOpen = true
	}
}

// end ends the reply that streams in.
func (s *remoteSpeech) end() {
	s.flush()
	s.shown.Reset()
	s.part = 0
}

// flush lets what follows begin on a row of its own.
func (s *remoteSpeech) flush() {
	if s.isOpen {
		s.face.Flush()
	}
	s.isOpen = false
}
