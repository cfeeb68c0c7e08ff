package teammate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/prompt"
	"muster/internal/text"
	"muster/llm"
	"muster/tool"
)

const remindAfter = 10 * time.Minute // how long the lead may leave a request undecided before it is told again

// recheckAfter is how often a waiting lead looks without a hint, because some facts change with time alone.
const recheckAfter = time.Minute

const mailWaits = "There is mail for you."

// lead is what only the lead does: it sleeps until something needs it, and the end of its turn may be the end of the
// run. It is for the goroutine of Live, and for the wait tool, which runs in its place.
type lead struct {
	team   *Overview
	staff  *staff
	talk   Talk
	tasks  holder
	diary  *diary
	mail   leadMail
	status leadStatus
	phase  waits

	toldStuck bool // that nothing can move, since it was woken last

	// told has the time of the last news of a request, or of a task by the key of its claim.
	told map[string]time.Time

	// changed receives after a turn has ended, when mail, the board, the roster or requests have changed.
	changed <-chan struct{}
}

// What the lead uses of the other parts of the member.
type (
	leadMail interface {
		hasWakingMail(context.Context) (bool, error)
		landings(context.Context) ([]muster.Message, error)
	}
	leadStatus interface {
		setStatus(ctx context.Context, s muster.MemberStatus, why muster.IdleReason, doing string) error
		show(ctx context.Context, doing string)
	}
	waits interface {
		noteChange()
		countWait(slept, mail bool) error
	}
)

// Wait is the lead's sleep as a tool: it returns when something needs the lead. Asked again in the same situation it
// answers the same.
func (l *lead) Wait(ctx context.Context, landings bool) (llm.Result, error) {
	if t, ok := l.tasks.CurrentTask(); ok {
		return llm.ErrorResult("Task #%d is in your own hand: complete it or give it back before you wait.", t.ID), nil
	}
	w, err := l.sleep(ctx, landings)
	if err != nil {
		return llm.Result{}, err
	}
	if err := l.phase.countWait(w.slept, w.mail); err != nil {
		return llm.Result{}, err
	}
	return tool.Text(w.text), nil
}

type wakeUp struct {
	wakeFacts
	text  string
	slept bool // false: something needed the lead at once
}

func (l *lead) sleep(ctx context.Context, landings bool) (w wakeUp, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := l.team.watch(ctx) // before the facts are read, so that no change is missed
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
				l.status.show(ctx, "")
			}
			return w, err
		}
		if !w.slept {
			w.slept = true
			if err := l.status.setStatus(ctx, muster.Idle, muster.IdleMessages, "waits for the team"); err != nil {
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

type wakeFacts struct {
	mail        bool
	progress    TeamProgress
	landing     string           // the news of a landing, if the lead waits for one
	requests    []muster.Request // that wait for the lead, and of which it was not told lately
	unclaimable []muster.Task    // ready tasks that nobody may claim, and of which it was not told
	heldOutside []muster.Task    // tasks that the team waits for and an outsider holds, of which it was not told
}

func (l *lead) wakeFacts(ctx context.Context, landings bool) (f wakeFacts, err error) {
	if f.mail, err = l.mail.hasWakingMail(ctx); err != nil || f.mail {
		return f, err
	}
	if f.progress, err = l.progress(ctx); err != nil {
		return f, err
	}
	if landings {
		news, err := l.mail.landings(ctx)
		if err != nil {
			return f, err
		}
		if len(news) > 0 {
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

// wakeReason returns what wakes the lead, "" for nothing, and the keys of what it is told by that, so that it is not
// woken for the same again. The user may also decide a request; so the lead is told of it when it would sleep, and then
// now and again.
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

// await shows what the lead waits for, hands the prompt to the user, and waits for mail or a change of the team, the
// end of the conversation, or the time to look again. done says that the run would end here.
func (l *lead) await(
	ctx context.Context, what string, done bool, closed <-chan struct{}, again <-chan time.Time,
) error {
	if err := l.status.setStatus(ctx, muster.Idle, muster.IdleMessages, what); err != nil {
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

func (l *lead) beginRest(ctx context.Context)                      { l.changed = l.team.watch(ctx) }
func (l *lead) progress(ctx context.Context) (TeamProgress, error) { return l.staff.progress(ctx) }

func (l *lead) handOver(done bool) {
	if isOpen(l.talk) {
		l.talk.Rest(done)
	}
}
