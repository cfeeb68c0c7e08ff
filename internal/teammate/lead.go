package teammate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/prompt"
	"muster/internal/text"
	"muster/internal/transcript"
	"muster/llm"
	"muster/tool"
)

// remindAfter is how long the lead may leave a request undecided, for the user perhaps,
// before it is told again.
const remindAfter = 10 * time.Minute

// recheckAfter is how often a waiting lead looks without a hint, because some facts change with the time alone. The
// store gives a hint within seconds for a change of which the system's file watcher does not tell.
const recheckAfter = time.Minute

// mailWaits is why a lead is woken most often.
const mailWaits = "There is mail for you."

// lead is what only the lead does: it sleeps until something needs it, and the end of its
// turn may be the end of the run. It is for the goroutine of Live, and for the wait tool,
// which runs in its place.
type lead struct {
	*self
	toldStuck bool // that nothing can move, since it was woken last

	// told has when the lead was told last that a request waits for it, or that nobody may claim a task, by the
	// key of the claim to be.
	told map[string]time.Time

	// changed receives after a turn has ended, when mail, the board, the roster or requests have changed.
	changed <-chan struct{}
}

// Wait is the lead's sleep as a tool: it returns when something needs the lead, at no cost
// until then. It is level-triggered: asked again in the same situation it answers the same.
func (l *lead) Wait(ctx context.Context, landings bool) (llm.Result, error) {
	if t, ok := l.claims.CurrentTask(); ok {
		return llm.ErrorResult("Task #%d is in your own hand: complete it or give it back before you wait.", t.ID), nil
	}
	w, err := l.sleep(ctx, landings)
	if err != nil {
		return llm.Result{}, err
	}
	if l.phase.countWait(w.slept, w.mail) { // told the same again and again, the lead does nothing about it
		return llm.Result{}, errLoop
	}
	return tool.Text(w.text), nil
}

// wakeUp is how a sleep of the lead ended: what needed the lead, and the facts that said so.
type wakeUp struct {
	wakeFacts
	text  string
	slept bool // false: something needed the lead at once
}

// sleep waits until something needs the lead. It decides on facts that it reads after each hint.
func (l *lead) sleep(ctx context.Context, landings bool) (w wakeUp, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := l.watch(ctx) // before the facts are read, so that no change is missed
	for {
		w.wakeFacts, err = l.wakeFacts(ctx, landings)
		if cause := context.Cause(ctx); cause != nil {
			return w, cause
		}
		if err == nil {
			var about []string
			w.text, about = wakeReason(w.wakeFacts)
			for _, key := range about {
				l.told[key] = time.Now()
			}
			l.noteHeldOutside(ctx, w.heldOutside)
		}
		if err != nil || w.text != "" {
			if w.slept {
				l.toldStuck = false
				l.phase.noteChange() // what has woken it is another's
				l.presence.show(ctx, "")
			}
			return w, err
		}
		if !w.slept {
			w.slept = true
			if err := l.presence.setStatus(ctx, muster.Idle, muster.IdleMessages, "waits for the team"); err != nil {
				return w, err
			}
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(recheckAfter):
		}
	}
}

// noteHeldOutside tells the user, once for each claim, that the team waits for somebody outside of it.
func (l *lead) noteHeldOutside(ctx context.Context, held []muster.Task) {
	for _, t := range held {
		key := "noted " + string(claimKey(t))
		if !l.told[key].IsZero() {
			continue
		}
		l.told[key] = time.Now()
		text := fmt.Sprintf("the team waits for task %d (%s), which %s holds from outside: muster task release %d",
			t.ID, t.Subject, t.Owner, t.ID)
		l.diary.dropped(ctx, "noting a task held from outside", l.diary.note(ctx, t.ID, text))
	}
}

// watch returns one channel for all changes that may concern a waiting lead.
func (l *lead) watch(ctx context.Context) <-chan struct{} {
	all := make(chan struct{}, 1)
	for _, c := range []<-chan struct{}{
		l.Post.Watch(ctx, l.name()), l.Board.Watch(ctx), l.Roster.Watch(ctx), l.Requests.Watch(ctx),
	} {
		go func() {
			for range c { // it is closed when ctx ends
				select {
				case all <- struct{}{}:
				default: // a hint waits already
				}
			}
		}()
	}
	return all
}

// wakeFacts are what decides whether a sleeping lead is woken.
type wakeFacts struct {
	mail        bool
	progress    TeamProgress
	landing     string           // the news of a landing, if the lead waits for one
	requests    []muster.Request // that wait for the lead, and of which it was not told lately
	unclaimable []muster.Task    // ready tasks that nobody may claim, and of which it was not told
	heldOutside []muster.Task    // tasks that the team waits for and an outsider holds, of which it was not told
}

// wakeFacts reads the facts of the lead's sleep. With mail nothing else matters, and is not read.
func (l *lead) wakeFacts(ctx context.Context, landings bool) (f wakeFacts, err error) {
	if f.mail, err = l.conversation.hasWakingMail(ctx); err != nil || f.mail {
		return f, err
	}
	if f.progress, err = l.staffedProgress(ctx); err != nil {
		return f, err
	}
	if landings {
		msgs, err := l.Post.Landings(ctx, l.name(), l.conversation.inbox)
		if err != nil {
			return f, err
		}
		if news := l.conversation.fresh(ctx, msgs); len(news) > 0 {
			f.landing = news[0].Content
		}
	}
	f.requests = slices.DeleteFunc(slices.Clone(f.progress.Requests),
		func(r muster.Request) bool { return time.Since(l.told[string(r.ID)]) < remindAfter })
	f.unclaimable = slices.DeleteFunc(slices.Clone(f.progress.Unclaimable),
		func(t muster.Task) bool { return !l.told[string(claimKey(t))].IsZero() })
	if len(f.progress.Working) == 0 {
		f.heldOutside = slices.DeleteFunc(slices.Clone(f.progress.HeldOutside),
			func(t muster.Task) bool { return !l.told[string(claimKey(t))].IsZero() })
	}
	return f, nil
}

// wakeReason returns what wakes the lead, and the keys of what it is told of by that, so that it is not woken for
// the same again. Without a text it sleeps on. A request may also be decided by the user, so that the lead is told
// of it when it would sleep, and then now and again; it may also sleep on.
func wakeReason(f wakeFacts) (text string, about []string) {
	switch {
	case f.mail:
		return mailWaits, nil
	case f.progress.Done():
		return allDoneText(f.progress), nil
	case f.landing != "":
		return f.landing, nil
	case f.progress.Stuck != "":
		return "Nothing can wake you: " + f.progress.Stuck + ".", nil
	case len(f.requests) > 0:
		r := f.requests[0]
		return fmt.Sprintf("Request %s of %s (%s, task #%d) waits for your decision. Decide it, or wait again to "+
			"leave it to the user.", r.ID, r.From, r.Kind, r.TaskID), []string{string(r.ID)}
	case len(f.unclaimable) > 0:
		var reasons []string
		for _, t := range f.unclaimable {
			reasons = append(reasons, unclaimedReason(t)+" ("+prompt.TaskLine(t)+")")
			about = append(about, string(claimKey(t)))
		}
		return "Nobody may take what is ready: " + strings.Join(reasons, "; ") + ".", about
	case len(f.heldOutside) > 0:
		t := f.heldOutside[0]
		text = fmt.Sprintf("The team waits for task #%d (%s), which %s holds from outside the team. Wait again to "+
			"leave it to them, or take it back: task_update {task_id: %d, status: pending}.",
			t.ID, t.Subject, t.Owner, t.ID)
		return text, []string{string(claimKey(t))}
	}
	return "", nil
}

func allDoneText(p TeamProgress) string {
	text := fmt.Sprintf("All done: %s landed, nothing is open.", text.Count(p.Landed, "task"))
	for _, t := range p.NeedsAttention {
		text += fmt.Sprintf(" Task #%d (%s) needs attention: %s.", t.ID, t.Subject, t.Result)
	}
	return text
}

func (l *lead) turnFacts(ctx context.Context) (f LeadFacts, err error) {
	c := l.phase.get()
	f = LeadFacts{Message: l.finalMessage(), CutOff: cutOffReason(l.name(), c.stop, c.words), ToldStuck: l.toldStuck,
		OnHold: c.onHold}
	// What the user says is heard whatever else holds. In a conversation the lead hears
	// everybody, unless the user has stopped it to speak first.
	everybody := l.inTalk() && !c.onHold
	msgs, err := l.Post.Waking(ctx, l.name(), l.conversation.inbox)
	f.ToHear = slices.ContainsFunc(l.conversation.fresh(ctx, msgs),
		func(m muster.Message) bool { return everybody || m.From == muster.User })
	if err == nil && !f.ToHear {
		f.Progress, err = l.staffedProgress(ctx)
	}
	return f, err
}

func (HearMail) do(ctx context.Context, m *Member) error {
	m.lead.toldStuck = false
	return m.wakeIf(m.conversation.deliverWaking(ctx))
}

func (a Listen) do(ctx context.Context, m *Member) error {
	return m.lead.await(ctx, "waits for you", a.Done, m.Talk.Closed(), nil)
}

func (AwaitTeam) do(ctx context.Context, m *Member) error {
	return m.lead.await(ctx, "waits for the team", false, nil, time.After(recheckAfter))
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
	p, err := m.Progress(ctx)
	if err != nil {
		return err
	}
	if err := m.begin(ctx, a.Afresh, tasksOnBoard(slices.Concat(p.Open, p.NeedsAttention)),
		prompt.Reminder("%s", text.EscapeTags(w.text))); err != nil {
		return err
	}
	_, err = m.conversation.deliver(ctx)
	return err
}

// await shows what the lead waits for, hands the prompt to the user, and waits for mail or a
// change of the team, for the end of the conversation, or for the time to look again. done
// says that the run would end here.
func (l *lead) await(
	ctx context.Context, what string, done bool, closed <-chan struct{}, again <-chan time.Time,
) error {
	if err := l.presence.setStatus(ctx, muster.Idle, muster.IdleMessages, what); err != nil {
		return err
	}
	l.handOver(done)
	select {
	case <-ctx.Done():
	case <-l.changed:
	case <-closed:
	case <-again:
	}
	return context.Cause(ctx)
}

func (l *lead) handOver(done bool) {
	if l.inTalk() {
		l.Talk.Rest(done)
	}
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
