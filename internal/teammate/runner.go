package teammate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/clock"
	"muster/internal/hooks"
	"muster/internal/prompt"
	"muster/internal/requests"
	"muster/internal/spend"
	"muster/internal/text"
	"muster/internal/tool/agent"
	"muster/internal/tool/code"
	"muster/internal/transcript"
	"muster/llm"
	"muster/loop"
)

// Member is a running member. The actions that Next decides work on it, and on its parts.
type Member struct {
	record   muster.Member // as it was in the roster when this life began
	limits   Limits
	ownModel bool // its model is not the team's
	run      func(context.Context) (muster.Run, error)
	model    llm.Model
	emit     func(loop.Event)
	talk     Talk
	phases   Phases
	requests *requests.Requests
	jobs     *code.Jobs
	todo     *agent.Todo
	diary    *diary

	phase        *phase
	presence     *presence
	conversation *conversation
	compaction   *compaction
	about        *surroundings
	claims       *claims
	hooks        *userHooks
	scratch      *scratchView
	toolbox      *toolbox
	lead         *lead
	team         *Overview

	// The course of the machine, which is of the goroutine of Live alone. All else that
	// decides what follows is read from records and parts.
	stage  Stage
	start  StartFacts // what was found when the transcript was opened
	err    error      // of the last phase
	byUser bool       // the user stopped the last phase
	// stopRest ends the watches of a rest.
	stopRest  context.CancelFunc
	rest      idleRest
	hookStops int  // how often in a row a hook has made an idle member go on
	end       *End // nil: the life goes on
}

func (m *Member) name() muster.Name { return m.record.Name }

// isLead reports whether the member is the lead. There is one in a team.
func (m *Member) isLead() bool { return m.record.Name == muster.Lead }

// End is how a member's life ended.
type End struct {
	// Code is the lead's verdict on the run: 0 all done, 1 an error, 3 work is left.
	Code int
	// Text is the last message, or why it ended.
	Text string
}

// TurnCount returns how many turns the member has had in its life.
func (m *Member) TurnCount() int { return int(m.presence.turns.Load()) }

// Live runs the member until it shuts down, its context ends, or (the lead) the run is over.
// When the context ends with muster.CauseShutdown the member leaves in order; with any other
// cause its records stay as they are, for the process that takes it over.
func (m *Member) Live(ctx context.Context) (End, error) {
	defer m.jobs.Close()
	end, err := m.act(ctx)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if m.stage != Left && (errors.Is(err, muster.CauseShutdown) || err == nil && !m.isLead()) {
		m.jobs.Close() // no command of it may run when its record says that it has shut down
		return end, Leave{}.do(ctx, m)
	}
	return end, err
}

// act opens the conversation and does what Next decides, until that is the end.
func (m *Member) act(ctx context.Context) (End, error) {
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
	_, _, err := m.requests.Decide(ctx, a.ID, m.name(), true, "idle") // its model is not asked
	return err
}

func (RecoverCalls) do(ctx context.Context, m *Member) error {
	// A landing or a plan that was cut off is waited for again: its record says how it ends.
	m.start.Recovered = true
	err := m.resumeHooks(ctx, m.answerCalls(ctx, true, "Interrupted; the outcome is unknown: check first."))
	m.compaction.restore()
	return err
}

func (ContinueConversation) do(ctx context.Context, m *Member) error {
	m.stage = Ready
	_, err := m.conversation.deliver(ctx)
	return err
}

func (TimeOut) do(ctx context.Context, m *Member) error {
	m.stage = Leaving
	return m.timeOut(ctx)
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
	m.hookStops = 0
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

func (ClaimTask) do(ctx context.Context, m *Member) error { return m.wakeIf(m.beginTask(ctx)) }

func (Rest) do(ctx context.Context, m *Member) error { return m.beginRest(ctx) }

// beginRest ends the turn. Its watches last until the rest is over.
func (m *Member) beginRest(ctx context.Context) error {
	m.stage = Resting
	watch, stop := context.WithCancel(ctx)
	m.stopRest = stop
	if m.isLead() {
		m.lead.rest(watch)
		return nil
	}
	return m.beginIdle(watch)
}

// open opens the transcript and finds the member's claim. The transcript is the first: once
// this process is its writer, a former host can begin nothing more.
func (m *Member) open(ctx context.Context) (err error) {
	if err := m.conversation.open(ctx); err != nil {
		return err
	}
	if err := m.claims.find(ctx); err != nil {
		return err
	}
	// After the claim was found: the lane of the current task has its occupant again, and is
	// not taken for abandoned.
	m.claims.lanes.archiveAbandoned(ctx)
	mark, err := m.conversation.openingMark(ctx)
	m.start.Opened = m.conversation.hasRead(mark)
	if err == nil && m.isLead() && !isOpen(m.talk) {
		var run muster.Run
		run, err = m.run(ctx)
		m.start.Unneeded = run.Playbook != nil
	}
	return err
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
	texts := append(append(about, m.conversation.identity(), m.about.place(), m.conversation.prompt(), task, said), more...)
	m.stage = Ready
	return m.conversation.begin(ctx, afresh, marks, texts)
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
	if m.isLead() && isOpen(m.talk) { // in a conversation the user can stop the lead's turn
		turn, done = m.talk.Turn(ctx)
	}
	if m.phases != nil {
		m.phases.Begin(ctx, m.name())
	}
	_, m.err = loop.Agent{Model: m.model, Tools: m.toolbox.get().tools, Conversation: (*session)(m),
		Boundary: (*session)(m).Boundary, Emit: m.emit, Parallel: parallel}.Run(turn)
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
	if err := m.requests.Leave(ctx, m.name(), "it has shut down"); err != nil {
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
	for _, c := range m.conversation.unanswered() {
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
		if err := m.conversation.answer(ctx, r); err != nil {
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
		m.emit(loop.ReplyDiscarded{})
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
func (m *Member) finalMessage() string {
	if c := m.phase.get(); c.words != "" {
		return c.words
	}
	if last := m.conversation.last(); last.Role == llm.Assistant {
		return textOf(last)
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

// resumeHooks runs the hooks of a conversation that goes on, unless err says that it cannot. No model is asked only to
// hear what they say.
func (m *Member) resumeHooks(ctx context.Context, err error) error {
	if err != nil || m.conversation.isEmpty() {
		return err
	}
	said, err := m.hooks.start(ctx, "resume")
	if err == nil && m.conversation.owesReply() {
		err = m.conversation.say(ctx, nil, said)
	}
	return err
}

// openingHooks runs the hooks of a conversation that begins, and of the goal with which the user begins it, and returns
// what they say. A goal that they refuse is an error.
func (m *Member) openingHooks(ctx context.Context) (string, error) {
	said, err := m.hooks.start(ctx, "startup")
	if err != nil || !m.isLead() || !m.hooks.has(hooks.UserPromptSubmit) {
		return said, err
	}
	run, err := m.run(ctx)
	words := cmp.Or(run.FirstWords, run.Goal)
	if err != nil || words == "" {
		return said, err
	}
	more, refused, err := m.hooks.prompt(ctx, words)
	if err == nil && refused != "" {
		err = muster.Errorf(muster.Invalid, "a hook refused the goal: %s", refused).
			WithHint("see the hooks, and where they come from:  muster hooks")
	}
	return strings.TrimSpace(said + "\n" + more), err
}

func (HearMail) do(ctx context.Context, m *Member) error {
	m.lead.toldStuck = false
	return m.wakeIf(m.conversation.deliverWaking(ctx))
}

func (a Listen) do(ctx context.Context, m *Member) error {
	return m.lead.listen(ctx, a.Done)
}

func (AwaitTeam) do(ctx context.Context, m *Member) error {
	return m.lead.awaitTeam(ctx)
}

// do tells the lead why nothing can move. If it ends its turn again, the run ends.
func (a TellStuck) do(ctx context.Context, m *Member) error {
	m.lead.toldStuck = true
	return m.wakeIf(true, m.conversation.remind(ctx, "You ended your turn, but %d %s open and nothing can move: %s. "+
		"Do something about it, or end again to stop the run with this work left.",
		a.Open, text.Plural(a.Open, "task is", "tasks are"), text.EscapeTags(a.Why)))
}

// do waits until something needs the lead, and wakes it with that. In a conversation the user gets the prompt
// back while the team works on.
func (Sleep) do(ctx context.Context, m *Member) error {
	m.lead.handOver(false)
	w, err := m.lead.sleep(ctx, false)
	if err == nil && w.mail {
		// What the user asks of the runtime is no reason to ask the model.
		var isAsk bool
		if isAsk, err = m.conversation.hasOnlyAsks(ctx); isAsk {
			return m.wakeIf(m.conversation.deliver(ctx))
		}
	}
	if err == nil {
		err = m.conversation.remind(ctx, "%s", text.EscapeTags(w.text))
	}
	if err != nil {
		return err
	}
	// News that has collected in the meantime enters with what woke the lead.
	_, err = m.conversation.deliver(ctx)
	return m.wakeIf(true, err)
}

// do waits as Sleep does. A run that is all done needs no lead, unless a task needs attention.
func (a AwaitNeed) do(ctx context.Context, m *Member) error {
	w, err := m.lead.sleep(ctx, false)
	if err != nil {
		return err
	}
	if p := w.progress; !w.mail && p.Done() && len(p.NeedsAttention) == 0 {
		m.end = &End{}
		return nil
	}
	tasks, err := m.team.tasksForLead(ctx)
	if err != nil {
		return err
	}
	if err := m.begin(ctx, a.Afresh, tasksOnBoard(tasks),
		prompt.Reminder("%s", text.EscapeTags(w.text))); err != nil {
		return err
	}
	_, err = m.conversation.deliver(ctx)
	return err
}

// LeadEnd returns how a run ended whose lead has shut down, from the lead's transcript and
// the board: what the lead's own process would have returned, had it not been killed before
// it could. A lead that was never asked in a run with a playbook has said nothing.
func (s *Services) LeadEnd(ctx context.Context) (End, error) {
	run, err := s.Run(ctx)
	if err != nil {
		return End{Code: 1}, err
	}
	var f LeadFacts
	wasAsked := run.Playbook == nil
	for e, err := range transcript.Read(ctx, s.Store.Log(), muster.Lead, 0) {
		switch {
		case errors.Is(err, muster.ErrCorrupt): // the conversation goes on without the entry
		case err != nil:
			return End{Code: 1}, err
		case slices.Contains(e.Mail, openingOf(run)):
			wasAsked = true
		case e.Kind == transcript.KindReply && wasAsked:
			f.Message = textOf(*e.Message)
			f.CutOff = cutOffReason(muster.Lead, e.Stop, f.Message)
		}
	}
	if f.Progress, err = s.Progress(ctx); err != nil {
		return End{Code: 1}, err
	}
	if end, over := runEnd(f); over {
		return end, nil
	}
	return End{Text: f.Message}, nil
}
