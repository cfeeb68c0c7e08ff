package chat

import (
	"strings"
	"time"

	"muster/internal/terminal"
)

// doubleEscapeWindow is how soon after the first Esc a second one edits the last message.
const doubleEscapeWindow = time.Second

// insteadOf begins a message that takes the place of the one before. The lead may have read that already, and mail is
// never taken back, so the lead is told.
const insteadOf = "Instead of my last message: "

// edit is what Esc and the editing of the last message need to know.
type edit struct {
	said   string // what the user has said last, as it was typed
	escape time.Time
}

// replacing returns what the user has entered. Where it was made of the last message, it says so.
func (e *edit) replacing(line terminal.Line) string {
	if !line.IsEdit || strings.HasPrefix(line.Text, "/") || strings.HasPrefix(line.Text, "!") {
		return line.Text
	}
	return insteadOf + line.Text
}

// escape stops what runs: a command of the user's, or else the lead's turn. A second Esc soon after, or one when
// nothing runs and nothing is typed, puts the last message back into the input.
func (s *Session) escape(isEmpty bool) {
	again := s.Now().Sub(s.edit.escape) < doubleEscapeWindow
	s.edit.escape = s.Now()
	switch {
	case s.stopShell():
	case !again && s.Remote && !s.leadRests:
		s.interruptRemote("Esc again edits your last message")
	case !again && s.HasBegun && s.Lead.Interrupt():
		s.Face.Print("stopped: the lead waits for you, the team works on (Esc again edits your last message)")
	case !again && !isEmpty:
	case s.edit.said == "":
	case s.Edit != nil:
		s.edit.escape = time.Time{} // the next Esc is a first one
		s.Edit(s.edit.said)
	}
}
