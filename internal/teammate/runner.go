package teammate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster"
	"muster/internal/mailbox"
	"muster/internal/transcript"
	"muster/loop"
)

// run opens the conversation and performs what Next decides, until that is the end. It is the
// only place that moves the machine on: a part of the member only changes facts.
func (m *Member) run(ctx context.Context) (End, error) {
	if err := m.open(ctx); err != nil {
		return End{Code: 1}, err
	}
	defer m.endRest()
	for m.end == nil {
		// Facts are never kept from one action to the next: an action, or another process,
		// may have changed any of them.
		f, err := m.facts(ctx)
		if err == nil {
			err = m.perform(ctx, Next(f))
		}
		if err != nil {
			return End{Code: 1}, err
		}
		if m.stage != Resting {
			m.endRest()
		}
	}
	return *m.end, nil
}

// perform does one action. What it learns comes back as facts.
func (m *Member) perform(ctx context.Context, a Action) (err error) {
	switch a := a.(type) {
	case Finish:
		m.end, err = &a.End, a.Err
	case GiveUp:
		err = m.giveUp(ctx)
	case GrantShutdown:
		m.end = &End{Text: "shut down while idle"}
		_, _, err = m.Requests.Decide(ctx, a.ID, m.name(), true, "idle") // its model is not asked
	case OpenConversation:
		err = m.openConversation(ctx, a.Afresh)
	case RecoverCalls:
		// A landing or a plan that was cut off is waited for again: its record says how it ends.
		m.start.Recovered = true
		err = m.answerCalls(ctx, true, "Interrupted; the outcome is unknown: check first.")
		m.todo.Restore(m.conversation.script.Messages())
	case ContinueConversation:
		m.stage = Ready
		_, err = m.conversation.deliver(ctx)
	case RunPhase:
		err = m.runPhase(ctx)
	case Rest:
		err = m.beginRest(ctx)
	case AnswerStopped:
		err = m.closeTurn(ctx)
	case AskUser:
		err = m.holdTurn(ctx)
	case RestartConversation:
		err = m.restartConversation(ctx)
	case Park:
		err = m.park(ctx)
	case ReleaseTask:
		err = m.releaseAtLimit(ctx)
	case WaitForWork:
		err = m.idle.wait(ctx)
	case Listen:
		err = m.lead.await(ctx, "waits for you", a.Done, m.Talk.Closed(), nil)
	case AwaitTeam:
		err = m.lead.await(ctx, "waits for the team", false, nil, time.After(recheckAfter))
	case TimeOut:
		m.stage = Leaving
		err = m.idle.timeOut(ctx)
	case Leave:
		if err = m.leave(ctx); err == nil {
			m.stage = Left
		}
	case Rejoin:
		m.stage = Leaving
		err = m.presence.rejoin(ctx)
	case DropClaim:
		err = ignoreLostClaim(m.claims.verify(ctx))
	default:
		err = m.wakeFor(ctx, a)
	}
	return err
}

// wakeFor performs an action that ends a rest: what it says to the model begins a work phase.
// One that turns out to have nothing to say leaves the member at rest.
func (m *Member) wakeFor(ctx context.Context, a Action) (err error) {
	woken := true
	switch a := a.(type) {
	case ReadMail:
		if err = m.conversation.wake(ctx); err == nil {
			woken, err = m.conversation.deliverWaking(ctx)
		}
	case AnnounceJobs:
		if err = m.conversation.wake(ctx); err == nil {
			woken, err = m.conversation.announceJobs(ctx)
		}
	case ResumeLanding:
		err = m.claims.resumeLanding(ctx)
	case PresentTask, ClaimTask:
		woken, err = m.idle.beginTask(ctx)
	case HearMail:
		m.lead.toldStuck = false
		woken, err = m.conversation.deliverWaking(ctx)
	case TellStuck:
		err = m.lead.tellStuck(ctx, a.Open, a.Why)
	case Sleep:
		err = m.lead.sleepAtRest(ctx)
	default:
		err = fmt.Errorf("no such action: %T", a)
	}
	if err == nil && woken {
		m.stage = Ready
	}
	return err
}

// beginRest ends the turn. Its watches last until the rest is over.
func (m *Member) beginRest(ctx context.Context) error {
	m.endRest()
	m.stage = Resting
	watch, stop := context.WithCancel(ctx)
	m.stopRest = stop
	if m.isLead() {
		m.lead.begin(watch, m.finalMessage())
		return nil
	}
	return m.idle.begin(watch)
}

// endRest ends what a rest waits on, and gives up the place in the queue.
func (m *Member) endRest() {
	m.stopRest()
	m.idle.rest.leaveQueue()
}

// open opens the transcript and finds the member's claim. The transcript is the first: once
// this process is its writer, a former host can begin nothing more.
func (m *Member) open(ctx context.Context) (err error) {
	if m.conversation.script, err = m.openTranscript(ctx); err != nil {
		return err
	}
	if err := m.claims.find(ctx); err != nil {
		return err
	}
	// After the claim was found: the lane of the current task has its occupant again, and is
	// not taken for abandoned.
	m.lanes.archiveAbandoned(ctx)
	mark, err := m.conversation.openingMark(ctx)
	m.start.Opened = m.conversation.script.Delivered(mark)
	return err
}

// openTranscript opens the transcript and makes this process its writer: any process that
// hosted the member before can append nothing more. That process may be stopped, not dead,
// and it may be this one, awake again; so the record is read once more. It is Fenced when
// another process hosts the member by now.
func (m *Member) openTranscript(ctx context.Context) (*transcript.Transcript, error) {
	const maxTries = 10
	for try := 1; ; try++ {
		t, err := transcript.Open(ctx, m.Store.Log(), m.name())
		if err != nil || t.Pos() == 0 {
			return t, err
		}
		switch err = t.TakeOver(ctx, m.record.Host); {
		case err == nil:
			r, err := m.Roster.Get(ctx, m.name())
			if err == nil && (r.Host != m.record.Host || r.Epoch != m.record.Epoch) {
				err = m.errOtherHost()
			}
			return t, err
		case !errors.Is(err, muster.ErrFenced) || try == maxTries:
			return nil, err
		}
	}
}

// openConversation says the opening words: who the member is, what it was spawned with, and
// its first task if it may claim one. A teammate's prompt is a model's or a person's, and is
// escaped; the lead's is the runtime's own.
func (m *Member) openConversation(ctx context.Context, afresh bool) error {
	mark, err := m.conversation.openingMark(ctx)
	if err != nil {
		return err
	}
	texts := []string{m.conversation.identity(), m.record.Prompt}
	marks := []muster.MessageID{mark}
	if !m.isLead() {
		texts[1] = mailbox.Escape(m.record.Prompt)
		text, key, err := m.claims.nextTask(ctx)
		if err != nil {
			return err
		}
		if text != "" {
			texts, marks = append(texts, text), append(marks, key)
		}
	}
	m.stage = Ready
	write := m.conversation.script.User
	if afresh {
		write = m.conversation.script.Fresh
	}
	return m.conversation.enter(ctx, write, marks, texts)
}

// parallel is how many read-only calls of one reply run side by side.
const parallel = 8

// runPhase runs the loop to its stop.
func (m *Member) runPhase(ctx context.Context) error {
	if m.stage != Retrying {
		m.phase.begin()
		if err := m.presence.setStatus(ctx, muster.Working, "", ""); err != nil {
			return err
		}
	}
	turn, done := ctx, func() {}
	if m.isLead() && m.inTalk() { // in a conversation the user can stop the lead's turn
		turn, done = m.Talk.Turn(ctx)
	}
	_, m.err = loop.Agent{Model: m.model, Tools: m.toolbox.get().tools, Conversation: session{m.self},
		Boundary: session{m.self}.Boundary, Emit: m.emit, Parallel: parallel}.Run(turn)
	m.outcome = outcomeOf(m.err, context.Cause(turn))
	done()
	m.stage = PhaseEnded
	return context.Cause(ctx)
}

// leave shuts the member down in order: its task goes back, and its lane is kept. The last
// writes are made even if ctx ends. The record says that it has shut down only after all
// else: a process that dies in between leaves a member that another process takes over.
func (m *Member) leave(ctx context.Context) error {
	ctx, cancel := lastWrites(ctx)
	defer cancel()
	if err := m.claims.release(ctx, "shutdown of its owner", "", false); err != nil {
		return err
	}
	if err := m.Requests.Leave(ctx, m.name(), "it has shut down"); err != nil {
		return err
	}
	if err := m.conversation.markLeft(ctx); err != nil {
		return err
	}
	return m.presence.leave(ctx)
}
