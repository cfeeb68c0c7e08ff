package teammate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/internal/spend"
	"muster/llm"
)

// Action is what a member does next; the types below are all there are.
type Action interface {
	// do performs the action. It is called on the goroutine of Live, and is the only one that moves the member
	// to another stage: a part of the member only changes facts.
	do(ctx context.Context, m *Member) error
}

// The actions of a member.
type (
	// OpenConversation says the opening words. Afresh starts a new conversation with them.
	OpenConversation struct{ Afresh bool }
	// AwaitNeed waits until something needs the lead, and opens its conversation with that, or ends the run without it.
	AwaitNeed struct{ Afresh bool }
	// RecoverCalls answers the calls that the last process left open.
	RecoverCalls struct{}
	// ContinueConversation delivers the mail that came in the meantime, and begins a work phase.
	ContinueConversation struct{}

	// RunPhase runs the loop. In Retrying it goes on with the phase that an error has ended.
	RunPhase struct{}
	// Rest ends the phase: the last message is sent, and the member looks for what to do.
	Rest struct{}
	// AnswerStopped answers the calls of a phase that the user stopped.
	AnswerStopped struct{}
	// AskUser waits for the user, because the lead met a limit.
	AskUser struct{}
	// RestartConversation makes the conversation shorter and goes on with the phase. Harder counts from one: each time
	// less is kept, from maxRestarts on nothing.
	RestartConversation struct{ Harder int }
	// AskForAnswer asks a member that has met a limit for its answer, once and without tools.
	AskForAnswer struct{}
	// ReleaseTask gives the task back because its owner met a limit.
	ReleaseTask struct{}
	// SetTaskAside sets the task aside, until the user looks, because its budget is spent.
	SetTaskAside struct{}
	// GiveUp ends a teammate whose model cannot go on.
	GiveUp struct{}

	// GrantShutdown grants a shutdown request and ends the life.
	GrantShutdown struct{ ID muster.RequestID }
	// ReadMail wakes the member with its mail.
	ReadMail struct{}
	// AnnounceJobs wakes the member with its finished background jobs.
	AnnounceJobs struct{}
	// DropClaim drops a claim that was lost.
	DropClaim struct{}
	// ResumeLanding goes on with an interrupted landing and wakes the member with its outcome.
	ResumeLanding struct{}
	// ClaimTask wakes the member with the task that it has claimed and not read, or with the next one, if there is one.
	ClaimTask struct{}
	// WaitForWork shows that the member is idle, and waits for a change.
	WaitForWork struct{}
	// TimeOut gives the task back and tells the lead that the member shuts down.
	TimeOut struct{}
	// Leave shuts the member down.
	Leave struct{}
	// Rejoin takes the shutdown back, because mail came before it.
	Rejoin struct{}

	// HearMail wakes the lead with its mail.
	HearMail struct{}
	// Listen waits for the user where a run would end. Done says that nothing is open.
	Listen struct{ Done bool }
	// AwaitTeam waits until somebody who is at work has finished.
	AwaitTeam struct{}
	// TellStuck wakes the lead once with why nothing can move.
	TellStuck struct {
		Open int
		Why  string
	}
	// Sleep waits until something needs the lead, and wakes it with that.
	Sleep struct{}

	// Finish ends the member's life, with an error if Err is set.
	Finish struct {
		End End
		Err error
	}
)

// Next decides what a member does. It is a pure function of the facts.
func Next(f Facts) Action {
	switch f.Stage {
	case Starting:
		return nextAtStart(f.Lead, f.Start)
	case Ready, Retrying:
		return RunPhase{}
	case PhaseEnded:
		return nextAfterPhase(f)
	case Resting:
		if f.Lead {
			return nextForLead(f)
		}
		return nextForTeammate(f)
	case Leaving:
		if f.WakingMail { // it came at the last moment
			return ReadMail{}
		}
		return Leave{}
	}
	// Left: the sender of a mail looked for the member before it had shut down, and found it there.
	if f.WakingMail && !f.Replaced {
		return Rejoin{}
	}
	return Finish{End: End{Text: "idle timeout"}}
}

// nextAtStart decides how a conversation goes on. The lead of a new run starts a new one. A teammate that is spawned
// again goes on with its own.
func nextAtStart(lead bool, f StartFacts) Action {
	switch {
	case lead && !f.Opened && f.Unneeded:
		return AwaitNeed{Afresh: !f.Empty}
	case lead && !f.Opened:
		return OpenConversation{Afresh: !f.Empty}
	case !f.Recovered:
		return RecoverCalls{}
	case f.Empty || !f.Opened:
		return OpenConversation{}
	case f.PhaseOver || !f.OwesReply:
		return Rest{}
	}
	return ContinueConversation{}
}

// TeamStop is an error of one member that stops the whole team, with its state as it is: a refused key, an account
// without credit, a server in lasting trouble, or a limit that the lead met.
type TeamStop struct{ Err error }

// Error returns the text of the member's error.
func (e *TeamStop) Error() string { return e.Err.Error() }

// Unwrap returns the member's error.
func (e *TeamStop) Unwrap() error { return e.Err }

// nextAfterPhase decides what follows a work phase, by the error that has ended it.
func nextAfterPhase(f Facts) Action {
	p := f.Phase
	var failed *llm.Error
	over, isOver := spend.IsExceeded(p.Err)
	switch {
	case isOver && over.Scope == spend.OfTask:
		return SetTaskAside{}
	case isOver && (over.StopsTeam() || f.Lead): // also in a conversation: asked again, it would say the same
		return Finish{Err: &TeamStop{Err: over}}
	case isOver:
		return GiveUp{}
	case p.Err == nil && p.ShutdownGranted:
		return Finish{End: End{Text: "shut down as asked"}}
	case p.Err == nil: // the model called no more tools, or a tool ended the phase
		return Rest{}
	case p.ByUser:
		return AnswerStopped{}
	case isLimit(p.Err) && f.Lead && f.InTalk: // in a conversation a limit ends the phase, not the run
		return AskUser{}
	case isLimit(p.Err) && !p.Answered && !errors.Is(p.Err, errMute):
		return AskForAnswer{}
	case isLimit(p.Err) && f.Lead:
		return Finish{Err: &TeamStop{Err: fmt.Errorf("the lead met %w", p.Err)}}
	case isLimit(p.Err):
		return ReleaseTask{}
	case !errors.As(p.Err, &failed): // something else than the model failed
		return Finish{Err: p.Err}
	}
	switch failed.Kind {
	case llm.ContextFull:
		if p.Restarts < maxRestarts {
			return RestartConversation{Harder: p.Restarts + 1}
		}
	case llm.BadHistory:
		if p.Restarts == 0 {
			return RestartConversation{Harder: maxRestarts}
		}
	case llm.Overloaded, llm.Unreachable, llm.Limited, llm.Incomplete: // it was waited for long enough
		if f.Lead && f.InTalk {
			return AskUser{}
		}
		return Finish{Err: &TeamStop{Err: p.Err}}
	case llm.Denied, llm.Spent:
		// The team's own key, model or account is refused to every member. That of one teammate concerns nobody else.
		if f.Lead || !p.OwnModel {
			return Finish{Err: &TeamStop{Err: p.Err}}
		}
	}
	if f.Lead {
		return Finish{Err: p.Err}
	}
	return GiveUp{}
}

func nextForTeammate(f Facts) Action {
	i := f.Idle
	switch {
	case i.Shutdown != "":
		return GrantShutdown{ID: i.Shutdown}
	case f.WakingMail:
		return ReadMail{}
	case i.JobsFinished:
		return AnnounceJobs{}
	case i.Claim == LostClaim:
		return DropClaim{}
	case i.Claim != NoClaim && i.Landing:
		return ResumeLanding{}
	case i.Claim != Presented && !i.TriedTask:
		return ClaimTask{}
	case i.TimedOut && !i.KeepsClaim:
		return TimeOut{}
	}
	return WaitForWork{}
}

func nextForLead(f Facts) Action {
	t := f.LeadAtRest
	if t.ToHear {
		return HearMail{}
	}
	end, over := runEnd(t)
	switch p := t.Progress; {
	case (over || t.OnHold) && f.InTalk:
		return Listen{Done: p.Done()}
	case over:
		return Finish{End: end}
	case len(p.Open) == 0: // somebody is still at work, and the lead is not asked again
		return AwaitTeam{}
	case p.Stuck != "":
		return TellStuck{Open: len(p.Open), Why: p.Stuck}
	}
	return Sleep{}
}

// runEnd says how the run ends now that the lead has spoken; over is false where it goes on.
func runEnd(t LeadFacts) (end End, over bool) {
	p := t.Progress
	switch {
	case t.CutOff != "": // a limit or a refusal is no success, whatever else holds
		return End{Code: 3, Text: t.CutOff}, true
	case len(p.Open) == 0 && len(p.Working) > 0:
		return End{}, false
	case len(p.Open) == 0 && len(p.Unreadable) > 0:
		why := unreadableReason(p.Unreadable[0]) + "; mend it, or put it aside: muster doctor"
		return End{Code: 3, Text: strings.TrimSpace(t.Message + "\n" + why)}, true
	case len(p.Open) == 0 && len(p.NeedsAttention) > 0:
		return End{Code: 3, Text: t.Message}, true
	case len(p.Open) == 0:
		return End{Text: t.Message}, true
	case p.Stuck != "" && t.ToldStuck:
		return End{Code: 3, Text: p.Stuck}, true
	}
	return End{}, false
}

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
	Stage      Stage
	Lead       bool
	InTalk     bool       // the user is in a conversation with the lead in this process
	WakingMail bool       // mail waits that is worth waking a model for
	Start      StartFacts // in Starting
	Phase      PhaseFacts // in PhaseEnded
	Idle       IdleFacts  // in Resting, of a teammate
	LeadAtRest LeadFacts  // in Resting, of the lead
	Replaced   bool       // in Left: the member was spawned again, and its next life reads the mail
}

// StartFacts are what a member finds in its transcript when it starts.
type StartFacts struct {
	Opened    bool // the opening words of this run or this spawn were said
	Empty     bool // nothing was said at all
	Recovered bool // the calls that the last process left open were answered
	PhaseOver bool // one of those calls has ended the phase
	OwesReply bool // the model has not answered the last message
	Unneeded  bool // the run has a playbook, and nothing has needed the lead yet
}

// PhaseFacts are how a work phase ended.
type PhaseFacts struct {
	Err             error // nil: the model called no more tools, or a tool ended the phase
	ByUser          bool  // with an Err: the user stopped the lead's turn
	ShutdownGranted bool  // the model has agreed to shut down
	OwnModel        bool  // the member's model is not the team's
	Restarts        int   // how often the conversation was made shorter, only a few replies ago
	Answered        bool  // the member was asked for its answer at a limit
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
	ToHear    bool         // mail waits that the lead hears whatever else holds
	Progress  TeamProgress // unless ToHear
	Message   string       // the lead's last message
	CutOff    string       // why that was no answer
	ToldStuck bool         // the lead was told that nothing can move, and has ended its phase again
	OnHold    bool         // the user speaks next
}

func (m *Member) facts(ctx context.Context) (f Facts, err error) {
	f = Facts{Stage: m.stage, Lead: m.isLead(), InTalk: isOpen(m.talk)}
	switch m.stage {
	case Starting:
		f.Start = m.start
		f.Start.Empty = m.conversation.isEmpty()
		f.Start.PhaseOver = m.phase.get().over
		f.Start.OwesReply = m.conversation.owesReply()
	case PhaseEnded:
		c := m.phase.get()
		f.Phase = PhaseFacts{Err: m.err, ByUser: m.byUser, ShutdownGranted: c.leaves,
			OwnModel: m.ownModel, Restarts: c.recentRestarts(), Answered: c.answered}
	case Resting:
		if m.isLead() {
			f.LeadAtRest, err = m.leadFacts(ctx)
			return f, err
		}
		if f.Idle, err = m.idleFacts(ctx); err == nil {
			f.WakingMail, err = m.conversation.hasWakingMail(ctx)
		}
	case Leaving:
		f.WakingMail, err = m.conversation.hasWakingMail(ctx)
	case Left:
		if f.WakingMail, err = m.conversation.hasWakingMail(ctx); f.WakingMail {
			f.Replaced, err = m.presence.isReplaced(ctx)
		}
	}
	return f, err
}

func (m *Member) leadFacts(ctx context.Context) (f LeadFacts, err error) {
	c := m.phase.get()
	f = LeadFacts{Message: m.finalMessage(), CutOff: cutOffReason(m.record.Name, c.stop, c.words),
		ToldStuck: m.lead.toldStuck, OnHold: c.onHold}
	// The user is always heard. In a conversation the lead hears everybody, unless the user has stopped it to speak
	// first.
	everybody := isOpen(m.talk) && !c.onHold
	msgs, err := m.conversation.waking(ctx)
	f.ToHear = slices.ContainsFunc(msgs, func(msg muster.Message) bool { return everybody || msg.From == muster.User })
	if err == nil && !f.ToHear {
		f.Progress, err = m.lead.progress(ctx)
	}
	return f, err
}
