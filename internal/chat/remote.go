package chat

import (
	"muster"
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
	s.speech = Speech{Face: s.Face, isRemote: true}
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
