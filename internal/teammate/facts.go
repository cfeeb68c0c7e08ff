package teammate

import (
	"context"

	"muster"
)

// Stage is how far a member has come.
type Stage int

// The stages of a member's life, in their order. A member goes from Resting back to Ready as
// often as something wakes it.
const (
	Starting   Stage = iota // the transcript is open, and nothing was done with it yet
	Ready                   // a work phase begins
	Retrying                // the work phase goes on after an error
	PhaseEnded              // the model has stopped
	Resting                 // a teammate is idle, or the lead's turn is over
	Leaving                 // the idle timeout has passed, and others were told
	Left                    // the member has shut down after an idle timeout
)

// Facts are what a member knows when it decides what to do next. Only the part that belongs
// to its stage is filled in: each fact costs a read.
type Facts struct {
	Stage Stage
	Lead  bool
	// InTalk says that the user is in a conversation with the lead in this process.
	InTalk bool
	// WakingMail says that mail waits that is worth waking a model for.
	WakingMail bool
	Start      StartFacts // in Starting
	Phase      PhaseFacts // in PhaseEnded
	Idle       IdleFacts  // in Resting, of a teammate
	LeadAtRest LeadFacts  // in Resting, of the lead
	// Replaced says, in Left, that the member was spawned again: its next life reads the
	// mail.
	Replaced bool
}

// StartFacts are what a member finds in its transcript when it starts.
type StartFacts struct {
	Opened    bool // the opening words of this run or this spawn were said
	Empty     bool // nothing was said at all
	Recovered bool // the calls that the last process left open were answered
	PhaseOver bool // one of those calls has ended the phase
	OwesReply bool // the model has not answered the last message
}

// PhaseFacts are how a work phase ended.
type PhaseFacts struct {
	Err             error // nil: the model called no more tools, or a tool ended the phase
	ByUser          bool  // with an Err: the user stopped the lead's turn
	ShutdownGranted bool  // the model has agreed to shut down
	Restarted       bool  // the conversation was started afresh, only a few replies ago
	Parks           int   // how often the member was parked in this phase
}

// IdleFacts are what an idle teammate looks at.
type IdleFacts struct {
	Shutdown     muster.RequestID // the shutdown request that waits for it
	JobsFinished bool             // background jobs have finished that it was not told of
	Claim        ClaimState
	Landing      bool // a landing of its task was cut off, and is to be resumed
	TriedTask    bool // it has tried to begin a task since it was woken
	TimedOut     bool // the idle timeout has passed
	KeepsClaim   bool // it must not be timed out yet; known only when TimedOut
}

// ClaimState says how an idle member's claim stands.
type ClaimState int

// The states of a claim.
const (
	NoClaim    ClaimState = iota
	Presented             // the member has a task, and has read its text
	NotYetRead            // the member has a task, and has not read its text: the process died in between
	LostClaim             // the task was taken from the member, completed by others, or deleted
)

// LeadFacts are what decides what the lead does after a phase.
type LeadFacts struct {
	ToHear   bool         // mail waits that the lead hears whatever else holds
	Progress TeamProgress // unless ToHear
	Message  string       // the lead's last message
	CutOff   string       // why that was no answer
	// ToldStuck says that the lead was told that nothing can move, and has ended its phase
	// again.
	ToldStuck bool
	OnHold    bool // the user speaks next
}

// facts gathers the facts of the member's stage.
func (m *Member) facts(ctx context.Context) (f Facts, err error) {
	f = Facts{Stage: m.stage, Lead: m.isLead(), InTalk: m.inTalk()}
	switch m.stage {
	case Starting:
		f.Start = m.start
		f.Start.Empty = len(m.conversation.script.Messages()) == 0
		f.Start.PhaseOver = m.phase.get().over
		f.Start.OwesReply = m.conversation.owesReply()
	case PhaseEnded:
		c := m.phase.get()
		f.Phase = PhaseFacts{Err: m.err, ByUser: m.byUser, ShutdownGranted: c.leaves,
			Restarted: c.restarted && c.replies < minReplies, Parks: c.parks}
	case Resting:
		if m.isLead() {
			f.LeadAtRest, err = m.lead.turnFacts(ctx)
			return f, err
		}
		if f.Idle, err = m.idle.facts(ctx); err == nil {
			f.WakingMail, err = m.conversation.hasWakingMail(ctx)
		}
	case Leaving:
		f.WakingMail, err = m.conversation.hasWakingMail(ctx)
	case Left:
		if f.WakingMail, err = m.conversation.hasWakingMail(ctx); err == nil && f.WakingMail {
			var r muster.Member
			r, err = m.Roster.Get(ctx, m.name())
			f.Replaced = !m.presence.hasLeft(r)
		}
	}
	return f, err
}

// minReplies is how many replies a conversation that was started afresh must have had before
// that helps a second time.
const minReplies = 3
