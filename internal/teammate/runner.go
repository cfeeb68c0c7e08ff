package teammate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/clock"
	"muster/internal/spend"
	"muster/internal/text"
	"muster/internal/transcript"
	"muster/llm"
	"muster/loop"
)

// run opens the conversation and does what Next decides, until that is the end.
func (m *Member) run(ctx context.Context) (End, error) {
	if err := m.open(ctx); err != nil {
		return End{Code: 1}, err
	}
	defer m.stopRest()
	for m.end == nil {
		action, err := m.next(ctx)
		if err == nil {
			err = action.do(ctx, m)
		}
		if err != nil {
			return End{Code: 1}, err
		}
		if m.stage != Resting {
			m.stopRest()
		}
	}
	return *m.end, nil
}

func (a Finish) do(_ context.Context, m *Member) error {
	m.end = &a.End
	return a.Err
}

func (a GrantShutdown) do(ctx context.Context, m *Member) error {
	m.end = &End{Text: "shut down while idle"}
	_, _, err := m.Requests.Decide(ctx, a.ID, m.name(), true, "idle") // its model is not asked
	return err
}

func (RecoverCalls) do(ctx context.Context, m *Member) error {
	// A landing or a plan that was cut off is waited for again: its record says how it ends.
	m.start.Recovered = true
	err := m.resumeHooks(ctx, m.answerCalls(ctx, true, "Interrupted; the outcome is unknown: check first."))
	m.todo.Restore(m.conversation.script.State(), m.conversation.script.Messages())
	return err
}

func (ContinueConversation) do(ctx context.Context, m *Member) error {
	m.stage = Ready
	_, err := m.conversation.deliver(ctx)
	return err
}

func (TimeOut) do(ctx context.Context, m *Member) error {
	m.stage = Leaving
	return m.idle.timeOut(ctx)
}

func (Rejoin) do(ctx context.Context, m *Member) error {
	m.stage = Leaving
	return m.presence.rejoin(ctx)
}

func (DropClaim) do(ctx context.Context, m *Member) error {
	return ignoreLostClaim(m.claims.verify(ctx))
}

// wakeIf begins a work phase, unless there was nothing to say to the model: then the member stays at rest.
func (m *Member) wakeIf(said bool, err error) error {
	if err == nil && said {
		m.stage = Ready
	}
	return err
}

// wakeWith loads the conversation, and begins a work phase if say has something to say in it.
func (m *Member) wakeWith(ctx context.Context, say func(context.Context) (bool, error)) error {
	if err := m.conversation.wake(ctx); err != nil {
		return err
	}
	m.idle.hookStops = 0
	return m.wakeIf(say(ctx))
}

func (ReadMail) do(ctx context.Context, m *Member) error {
	return m.wakeWith(ctx, m.conversation.deliverWaking)
}

func (AnnounceJobs) do(ctx context.Context, m *Member) error {
	return m.wakeWith(ctx, m.conversation.announceJobs)
}

func (ResumeLanding) do(ctx context.Context, m *Member) error {
	return m.wakeIf(true, m.resumeLanding(ctx))
}

func (m *Member) resumeLanding(ctx context.Context) error {
	t, ok := m.claims.CurrentTask()
	if !ok {
		return nil
	}
	if err := m.conversation.wake(ctx); err != nil {
		return err
	}
	text, err := m.claims.resumeLanding(ctx, t.ID)
	if err != nil {
		return err
	}
	return m.conversation.remind(ctx, "%s", text)
}

func (ClaimTask) do(ctx context.Context, m *Member) error { return m.wakeIf(m.idle.beginTask(ctx)) }

func (Rest) do(ctx context.Context, m *Member) error { return m.beginRest(ctx) }

// beginRest ends the turn. Its watches last until the rest is over.
func (m *Member) beginRest(ctx context.Context) error {
	m.stage = Resting
	watch, stop := context.WithCancel(ctx)
	m.stopRest = stop
	if m.isLead() {
		m.lead.changed = m.lead.watch(watch)
		return nil
	}
	return m.idle.begin(watch)
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
	m.claims.lanes.archiveAbandoned(ctx)
	mark, err := m.conversation.openingMark(ctx)
	m.start.Opened = m.conversation.script.Delivered(mark)
	if err == nil && m.isLead() && !m.inTalk() {
		var run muster.Run
		run, err = m.Run(ctx)
		m.start.Unneeded = run.Playbook != nil
	}
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
		switch err = t.TakeOver(ctx, m.Record.Host); {
		case err == nil:
			return t, m.presence.checkHost(ctx)
		case !errors.Is(err, muster.ErrFenced) || try == maxTries:
			return nil, err
		}
	}
}

// prompt returns what the member was spawned with. A teammate's is a model's or a person's, and is escaped; the lead's
// is the runtime's own.
func (s *self) prompt() string {
	if s.isLead() {
		return s.Record.Prompt
	}
	return text.EscapeTags(s.Record.Prompt)
}

// do says who the member is, what it was spawned with, and its first task if it may claim one.
func (a OpenConversation) do(ctx context.Context, m *Member) error { return m.begin(ctx, a.Afresh) }

// begin begins the conversation, and the first work phase with it. more is what is said besides.
func (m *Member) begin(ctx context.Context, afresh bool, more ...string) error {
	mark, err := m.conversation.openingMark(ctx)
	if err != nil {
		return err
	}
	about, err := m.about.texts(ctx, false)
	if err != nil {
		return err
	}
	said, err := m.openingHooks(ctx)
	if err != nil {
		return err
	}
	marks, task := []muster.MessageID{mark}, ""
	if !m.isLead() {
		var key muster.MessageID
		if task, key, err = m.claims.nextTask(ctx); err != nil {
			return err
		}
		if task != "" {
			marks = append(marks, key)
		}
	}
	texts := append(append(about, m.conversation.identity(), m.about.place(), m.prompt(), task, said), more...)
	m.stage = Ready
	write := m.conversation.script.User
	if afresh {
		write = m.conversation.script.Fresh
	}
	return m.conversation.enter(ctx, write, marks, texts)
}

// parallel is how many read-only calls of one reply run side by side.
const parallel = 8

func (RunPhase) do(ctx context.Context, m *Member) error {
	if m.stage != Retrying {
		m.phase.change(func(c *counters) {
			c.still.endIfChanged() // what came before the first round is no part of it
			*c = counters{started: time.Now(), still: c.still}
		})
		if err := m.presence.setStatus(ctx, muster.Working, "", ""); err != nil {
			return err
		}
	}
	turn, done := ctx, func() {}
	if m.isLead() && m.inTalk() { // in a conversation the user can stop the lead's turn
		turn, done = m.Talk.Turn(ctx)
	}
	if m.Phases != nil {
		m.Phases.Begin(ctx, m.name())
	}
	_, m.err = loop.Agent{Model: m.models.own.Model, Tools: m.toolbox.get().tools, Conversation: session{m.self},
		Boundary: session{m.self}.Boundary, Emit: m.Emit, Parallel: parallel}.Run(turn)
	m.byUser = errors.Is(context.Cause(turn), muster.CauseTurn)
	done()
	m.stage = PhaseEnded
	return cmp.Or(m.endPhase(ctx), context.Cause(ctx))
}

// do shuts the member down in order: its task goes back, and its lane is kept. The last
// writes are made even if ctx ends. The record says that it has shut down only after all
// else: a process that dies in between leaves a member that another process takes over.
func (Leave) do(ctx context.Context, m *Member) error {
	ctx, cancel := clock.Detach(ctx)
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
	if err := m.presence.leave(ctx); err != nil {
		return err
	}
	m.stage = Left
	return nil
}

// answerCalls answers the calls that a crash, Ctrl-C or the user left without a result. Any
// call that records do not answer may or may not have happened: the runtime never runs it
// again, and the model reads unknown. With resume it may also wait for the end of what a call
// had begun.
func (m *Member) answerCalls(ctx context.Context, resume bool, unknown string) error {
	for _, c := range m.conversation.script.Unanswered() {
		var r llm.Result
		var known bool
		var err error
		if t := m.toolbox.recoverer(c.Name); t != nil && c.Malformed == "" { // a malformed call has never run
			r, known, err = t.Recover(ctx, c, resume)
		}
		if err != nil && resume {
			return err
		}
		if err != nil || !known {
			r = llm.ErrorResult("%s", unknown)
		}
		r.ID = c.ID
		if err := m.conversation.script.Result(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// do ends a turn that the user stopped: every call gets its answer, and the model is
// told why it was cut off.
func (AnswerStopped) do(ctx context.Context, m *Member) error {
	err := m.answerCalls(ctx, false, "The user stopped this turn; the outcome is unknown: check first.")
	if err == nil {
		// The words of a turn that was cut off are no last message, and the user speaks next.
		m.phase.change(func(c *counters) { c.onHold, c.words, c.stop = true, "", "" })
		m.Emit(loop.ReplyDiscarded{})
		err = m.conversation.remind(ctx, "The user stopped your turn here. Hear first what they want.")
	}
	if err != nil {
		return err
	}
	return m.beginRest(ctx)
}

func (AskUser) do(ctx context.Context, m *Member) error {
	// For people only: without it the lead still waits for the user.
	_ = m.diary.note(context.WithoutCancel(ctx), 0, "the lead met "+muster.PlainText(m.err)+"; say how to go on")
	m.phase.change(func(c *counters) { c.onHold = true })
	return m.beginRest(ctx)
}

// do releases the task. It counts as an attempt.
func (ReleaseTask) do(ctx context.Context, m *Member) error {
	if err := m.claims.release(ctx, m.err.Error(), m.finalMessage(), true); err != nil {
		return err
	}
	return m.beginRest(ctx)
}

// do sets the task aside. Work that has landed meanwhile is as good.
func (SetTaskAside) do(ctx context.Context, m *Member) error {
	over, _ := spend.IsExceeded(m.err)
	err := m.claims.giveUp(ctx, board.Release{By: m.name(), Final: true, Note: m.finalMessage(),
		Reason: fmt.Sprintf("%v; raise budget.task, then retry it", over)})
	if err != nil && !errors.Is(err, muster.ErrHeld) {
		return err
	}
	return m.beginRest(ctx)
}

// finalMessage returns what the model said last. After a restart it is read from the
// transcript.
func (s *self) finalMessage() string {
	if c := s.phase.get(); c.words != "" {
		return c.words
	}
	if m := s.conversation.last(); m.Role == llm.Assistant {
		return textOf(m)
	}
	return "" // something was said to it since
}

func (GiveUp) do(ctx context.Context, m *Member) error {
	why, reason := text.CutBytes(m.err.Error(), maxQuote), "its owner's model failed"
	over, isOver := spend.IsExceeded(m.err)
	if isOver {
		why, reason = over.Error(), "its owner's budget is spent"
	}
	// The next owner reads why in the task's note. A failure counts as an attempt, so that a task
	// which no model can do does not go round for ever.
	t, had := m.claims.CurrentTask()
	if err := m.claims.release(ctx, reason, why, !isOver); err != nil {
		return err
	}
	m.end = &End{Text: why}
	text := fmt.Sprintf("%s is shut down: %s", m.name(), why)
	if had {
		text += fmt.Sprintf("\nIts task #%d is back on the board.", t.ID)
	}
	return m.diary.tellLead(ctx, muster.MailError, 0, text)
}
