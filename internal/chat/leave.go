package chat

import "muster/internal/terminal"

// leave ends the conversation with how. Where a team is at work that can go on without the terminal, the user is asked
// first.
func (s *Session) leave(how Outcome) (Outcome, bool) {
	_, isDone := s.Lead.Resting()
	// Who wants to leave again before the question is on the screen has answered it.
	if !s.CanWorkOn || !s.HasBegun || s.Remote || isDone || s.asks {
		return how, true
	}
	s.leaving, s.asks = how, true
	s.Face.Ask(terminal.Question{ID: leaveQuestion, Title: "what becomes of the team?", Keys: []terminal.Key{
		{Name: "s", Label: "stop it, keep the state"}, {Name: "b", Label: "leave it at work in the background"},
		{Name: "esc", Label: "stay here"}, {Name: "ctrl+c"}, {Name: "ctrl+d"}}})
	return how, false
}

// answerLeave takes the answer to the question of leave. Who presses Ctrl-C or Ctrl-D once more wants to be gone.
func (s *Session) answerLeave(key string) (Outcome, bool) {
	// Until the next question, which is another one.
	s.asks = false
	switch key {
	case "b":
		return LeftWorking, true
	case "esc":
		return s.leaving, false
	}
	return s.leaving, true
}
