package teammate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/clock"
	"muster/internal/hooks"
	"muster/internal/prompt"
	"muster/internal/spend"
	"muster/internal/text"
	"muster/llm"
	"muster/loop"
)

func (m *Member) wakeIf(said bool, err error) error {
	if err == nil && said {
		m.stage = Ready
	}
	return err
}

func (m *Member) wakeWith(ctx context.Context, say func(context.Context) (bool, error)) error {
	if err := m.conversation.wake(ctx); err != nil {
		return err
	}
	if !m.start.Opened { // it had nothing to do since it was spawned
		if err := m.begin(ctx, opens{}); err != nil {
			return err
		}
	}
	m.hookStops = 0
	return m.wakeIf(say(ctx))
}

// At the start.

func (a OpenConversation) do(ctx context.Context, m *Member) error {
	if m.isLead() {
		return m.begin(ctx, opens{afresh: a.Afresh})
	}
	text, key, err := m.firstTask(ctx)
	if err != nil {
		return err
	}
	if text == "" && !m.mayBegin(ctx) {
		err = m.beginRest(ctx)
		m.rest.reason = muster.IdleTasks
		return err
	}
	return m.begin(ctx, opens{afresh: a.Afresh, task: text, key: key})
}

// firstTaskGrace is how long a new teammate waits for a task before it begins with its prompt alone: the lead may
// create the tasks after the teammates, in the same reply.
const firstTaskGrace = time.Second

// firstTask returns the text of the task with which a teammate begins; "" for none.
func (m *Member) firstTask(ctx context.Context) (text string, key muster.MessageID, err error) {
	watch, stop := context.WithCancel(ctx)
	defer stop()
	board, grace := m.claims.watch(watch), time.After(firstTaskGrace)
	for {
		if text, key, err = m.claims.nextTask(ctx); err != nil || text != "" {
			return text, key, err
		}
		if mail, err := m.conversation.hasWakingMail(ctx); err != nil || mail {
			return "", "", err
		}
		select {
		case <-board:
		case <-grace:
			return "", "", nil
		case <-ctx.Done():
			return "", "", context.Cause(ctx)
		}
	}
}

// mayBegin reports whether a teammate without a task has something to do: mail, or a prompt, unless all tasks for it
// are blocked. Then it costs no request until one is free.
func (m *Member) mayBegin(ctx context.Context) bool {
	if mail, err := m.conversation.hasWakingMail(ctx); err != nil || mail {
		return true
	}
	waits, err := m.team.hasBlockedTask(ctx, m.presence.Me())
	m.diary.dropped(ctx, "looking for tasks that wait", err)
	return !waits && m.conversation.prompt() != ""
}

// opens says with what a conversation begins beside the facts.
type opens struct {
	afresh bool
	task   string
	key    muster.MessageID // of the task
	more   []string
}

func (m *Member) begin(ctx context.Context, o opens) error {
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
	marks := []muster.MessageID{mark}
	if o.task != "" {
		marks = append(marks, o.key)
	}
	v := m.conversation
	texts := append(append(about, v.identity(), m.about.place(ctx), v.prompt(), o.task, said), o.more...)
	m.stage, m.start.Opened = Ready, true
	return v.enter(ctx, o.afresh, marks, texts)
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
	more := []string{tasksOnBoard(tasks), prompt.Reminder("%s", text.EscapeTags(w.text))}
	if err := m.begin(ctx, opens{afresh: a.Afresh, more: more}); err != nil {
		return err
	}
	_, err = m.conversation.deliver(ctx)
	return err
}

func (RecoverCalls) do(ctx context.Context, m *Member) error {
	// A landing or a plan that was cut off is waited for again: its record says how it ends.
	m.start.Recovered = true
	err := m.answerCalls(ctx, true, "Interrupted. The outcome is unknown: check it first.")
	if err == nil {
		err = m.resumeHooks(ctx)
	}
	if err == nil {
		err = m.tellTeamRules(ctx)
	}
	m.compaction.restore()
	return err
}

// tellTeamRules tells a lead the rules for a team if the last process has died before it could.
func (m *Member) tellTeamRules(ctx context.Context) error {
	if !m.isLead() || m.conversation.isEmpty() || !m.conversation.owesReply() || m.conversation.isAlone(ctx) ||
		hasText(m.conversation.script.Messages(), prompt.TeamRules()) {
		return nil
	}
	return m.conversation.say(ctx, nil, prompt.TeamRules())
}

// answerCalls answers the calls that a crash, Ctrl-C or the user left without a result. A call that records do not
// answer is never run again: the model reads unknown. With resume it may wait for the end of what a call had begun.
func (m *Member) answerCalls(ctx context.Context, resume bool, unknown string) error {
	for _, c := range m.conversation.unanswered() {
		var r llm.Result
		var known bool
		var err error
		if t := m.toolbox.recoverer(ctx, c.Name); t != nil && c.Malformed == "" { // a malformed call has never run
			r, known, err = t.Recover(ctx, c, resume)
		}
		if resume && err == nil && !known {
			r, known, err = m.toolbox.wraps.permits.notRun(ctx, c.ID, m.conversation.repliedAt())
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

func (m *Member) resumeHooks(ctx context.Context) error {
	if m.conversation.isEmpty() {
		return nil
	}
	said, err := m.hooks.start(ctx, "resume")
	if err == nil && m.conversation.owesReply() {
		err = m.conversation.say(ctx, nil, said)
	}
	return err
}

func (ContinueConversation) do(ctx context.Context, m *Member) error {
	m.stage = Ready
	_, err := m.conversation.deliver(ctx)
	return err
}

// The work phase, and how it ends.

const parallel = 8 // how many read-only calls of one reply run side by side

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
		m.phases.Begin(ctx, m.record.Name)
	}
	s := (*session)(m)
	_, m.err = loop.Agent{Model: m.model, Tools: m.toolbox.get(ctx).tools, Conversation: s, Boundary: s.Boundary,
		Emit: m.emit, Parallel: parallel}.Run(turn)
	m.byUser = errors.Is(context.Cause(turn), muster.CauseTurn)
	done()
	m.stage = PhaseEnded
	return cmp.Or(m.endPhase(ctx), context.Cause(ctx))
}

// endPhase has what is not the member's looked at, also when ctx has ended.
func (m *Member) endPhase(ctx context.Context) error {
	if m.phases == nil {
		return nil
	}
	last, cancel := clock.Detach(ctx)
	defer cancel()
	t, _ := m.claims.CurrentTask()
	if moved := m.phases.End(last, m.record.Name, t); moved != "" && ctx.Err() == nil {
		return m.claims.release(ctx, "its owner moved the target", moved, true)
	}
	return nil
}

func (Rest) do(ctx context.Context, m *Member) error { return m.beginRest(ctx) }

func (m *Member) beginRest(ctx context.Context) error {
	m.stage = Resting
	watch, stop := context.WithCancel(ctx)
	m.stopRest = stop
	if m.isLead() {
		m.lead.beginRest(watch)
		return nil
	}
	return m.beginIdle(watch)
}

func (AnswerStopped) do(ctx context.Context, m *Member) error {
	err := m.answerCalls(ctx, false, "The user stopped this turn. The outcome is unknown: check it first.")
	if err == nil {
		// The words of a turn that was cut off are no last message, and the user speaks next.
		m.phase.change(func(c *counters) { c.onHold, c.words, c.stop = true, "", "" })
		m.emit(loop.ReplyDiscarded{})
		err = m.conversation.remind(ctx, "The user stopped your turn here. Wait for what they say.")
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

func (a RestartConversation) do(ctx context.Context, m *Member) error {
	m.stage = Retrying
	if err := m.compaction.afterError(ctx, m.err, a.Harder); err != nil {
		return err
	}
	m.phase.change(func(c *counters) { c.restarts, c.replies, c.prompts = a.Harder, 0, promptSizes{} })
	return nil
}

// do ends the run of a lead with its answer if nothing is open. Otherwise what follows a limit follows.
func (AskForAnswer) do(ctx context.Context, m *Member) error {
	m.phase.change(func(c *counters) { c.answered = true })
	if err := m.conversation.remind(ctx, "This phase ends here: you have met %v. You get no further turn, and no call "+
		"is run. Answer now in words with what you have found and done, and what is left.", m.err); err != nil {
		return err
	}
	words, err := m.lastAnswer(ctx)
	if err != nil || words == "" || !m.isLead() {
		return err
	}
	progress, err := m.lead.progress(ctx)
	if end, over := runEnd(LeadFacts{Progress: progress, Message: words}); err == nil && over {
		return Finish{End: end}.do(ctx, m)
	}
	return err
}

// lastAnswer asks the model once, keeps the words of its reply, and returns them. They are "" if there are none, or if
// the model fails: then the limit alone decides what follows.
func (m *Member) lastAnswer(ctx context.Context) (string, error) {
	p := m.toolbox.get(ctx)
	messages, err := m.compaction.fit(ctx, p)
	if err != nil {
		return "", err
	}
	r, err := m.model.Reply(ctx, m.conversation.request(ctx, p, messages), func(llm.Delta) {})
	if err != nil {
		m.diary.dropped(ctx, "asking for the answer at a limit", err)
		return "", context.Cause(ctx)
	}
	m.presence.onModelReply(ctx)
	m.diary.replied(ctx, r, map[string]any{"answer": true})
	words := textOf(r.Message)
	if words == "" {
		return "", nil
	}
	r.Message.Parts, r.Stop = llm.Parts{llm.Text{Text: words}}, llm.StopEnd
	if err := m.conversation.reply(ctx, r); err != nil {
		return "", err
	}
	m.phase.change(func(c *counters) { c.words, c.stop = words, llm.StopEnd })
	return words, nil
}

func (ReleaseTask) do(ctx context.Context, m *Member) error {
	if err := m.claims.release(ctx, m.err.Error(), m.finalMessage(), true); err != nil {
		return err
	}
	return m.beginRest(ctx)
}

// do sets the task aside. Work that has landed meanwhile is as good.
func (SetTaskAside) do(ctx context.Context, m *Member) error {
	over, _ := spend.IsExceeded(m.err)
	err := m.claims.giveUp(ctx, board.Release{By: m.record.Name, Final: true, Note: m.finalMessage(),
		Reason: fmt.Sprintf("%v; raise budget.task, then retry it", over)})
	if err != nil && !errors.Is(err, muster.ErrHeld) {
		return err
	}
	return m.beginRest(ctx)
}

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
	// The next owner reads why. A failure counts as an attempt: no task goes round for ever.
	t, had := m.claims.CurrentTask()
	if err := m.claims.release(ctx, reason, why, !isOver); err != nil {
		return err
	}
	m.end = &End{Text: why}
	text := fmt.Sprintf("%s is shut down: %s", m.record.Name, why)
	if had {
		text += fmt.Sprintf("\nIts task #%d is back on the board.", t.ID)
	}
	return m.diary.tellLead(ctx, muster.MailError, 0, text)
}

// A teammate at rest.

func (a GrantShutdown) do(ctx context.Context, m *Member) error {
	m.end = &End{Text: "shut down while idle"}
	_, _, err := m.requests.Decide(ctx, a.ID, m.record.Name, true, "idle") // its model is not asked
	return err
}

func (ReadMail) do(ctx context.Context, m *Member) error {
	return m.wakeWith(ctx, m.conversation.deliverWaking)
}

func (AnnounceJobs) do(ctx context.Context, m *Member) error {
	return m.wakeWith(ctx, m.conversation.announceJobs)
}

func (DropClaim) do(ctx context.Context, m *Member) error {
	return ignoreLostClaim(m.claims.verify(ctx))
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

func (WaitForWork) do(ctx context.Context, m *Member) error {
	if goesOn, err := m.idleHooks(ctx); err != nil || goesOn {
		return m.wakeIf(goesOn, err)
	}
	return m.waitForWork(ctx)
}

func (TimeOut) do(ctx context.Context, m *Member) error {
	m.stage = Leaving
	return m.timeOut(ctx)
}

// do shuts the member down in order, also if ctx ends. The record says so after all else: if the process dies in
// between, another one takes the member over.
func (Leave) do(ctx context.Context, m *Member) error {
	ctx, cancel := clock.Detach(ctx)
	defer cancel()
	if err := m.claims.release(ctx, "shutdown of its owner", "", false); err != nil {
		return err
	}
	if err := m.requests.Leave(ctx, m.record.Name, "it has shut down"); err != nil {
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

func (Rejoin) do(ctx context.Context, m *Member) error {
	m.stage = Leaving
	return m.presence.rejoin(ctx)
}

// The lead at rest.

func (HearMail) do(ctx context.Context, m *Member) error {
	m.lead.toldStuck = false
	return m.wakeIf(m.conversation.deliverWaking(ctx))
}

func (a Listen) do(ctx context.Context, m *Member) error {
	return m.lead.await(ctx, "waits for you", a.Done, m.talk.Closed(), nil)
}

func (AwaitTeam) do(ctx context.Context, m *Member) error {
	return m.lead.await(ctx, "waits for the team", false, nil, time.After(recheckAfter))
}

func (a TellStuck) do(ctx context.Context, m *Member) error {
	m.lead.toldStuck = true
	return m.wakeIf(true, m.conversation.remind(ctx, "You ended your turn, but %d %s open and nothing can move: %s. "+
		"Change that, or end again to stop the run with this work open.",
		a.Open, text.Plural(a.Open, "task is", "tasks are"), text.EscapeTags(a.Why)))
}

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

func (a Finish) do(ctx context.Context, m *Member) error {
	m.end = &a.End
	if a.Err == nil {
		m.diary.dropped(ctx, "leaving the lane without a task", m.claims.own.leave(ctx))
	}
	return a.Err
}
