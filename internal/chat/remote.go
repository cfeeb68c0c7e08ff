package chat

import "muster/team"

// remoteLead is a lead that lives in another process. What the user types is mailed to it. It cannot be interrupted or
// told to end from here, and whether it waits for the user cannot be seen, so the user may write at any time.
type remoteLead struct{ *team.Attachment }

// Interrupt returns false: it cannot reach into another process.
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
}
