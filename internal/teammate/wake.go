package teammate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"muster"
	"muster/internal/prompt"
	"muster/llm"
	"muster/tool"
)

// remindAfter is how long the lead may leave a request undecided, for the user perhaps,
// before it is told again.
const remindAfter = 10 * time.Minute

// recheckAfter is how often a sleeping lead looks without a hint.
const recheckAfter = time.Minute

// mailWaits is why a lead is woken most often.
const mailWaits = "There is mail for you."

// leadWait is the lead's sleep: what it waits for, and what it was told already. It is for
// the goroutine of Live, and for the wait tool, which runs in its place.
type leadWait struct {
	*self
	presence     *presence
	conversation *conversation
	claims       *claims
	phase        *phase

	toldStuck       bool                           // that nothing can move, since it was woken last
	toldUnclaimable map[muster.MessageID]bool      // tasks that nobody may claim, by the key of the claim to be
	toldRequest     map[muster.RequestID]time.Time // when it was told last that a request waits for it
}

// Wait is the lead's sleep as a tool: it returns when something needs the lead, at no cost
// until then. It is level-triggered: asked again in the same situation it answers the same.
func (w *leadWait) Wait(ctx context.Context, landings bool) (llm.Result, error) {
	if t, ok := w.claims.CurrentTask(); ok {
		return llm.ErrorResult("Task #%d is in your own hand: complete it or give it back before you wait.", t.ID), nil
	}
	text, slept, err := w.sleep(ctx, landings)
	if err != nil {
		return llm.Result{}, err
	}
	isLoop := false
	w.phase.change(func(c *counters) { isLoop = c.countWait(slept, text == mailWaits) })
	if isLoop { // told the same again and again, the lead does nothing about it
		return llm.Result{}, errLoop
	}
	return tool.Text(text), nil
}

// sleep waits until something needs the lead, and says what. slept is false if something
// needed it at once.
func (w *leadWait) sleep(ctx context.Context, landings bool) (text string, slept bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := w.watch(ctx) // before the facts are read, so that no change is missed
	tick := time.NewTicker(recheckAfter)
	defer tick.Stop()
	for {
		f, err := w.facts(ctx, landings)
		if cause := context.Cause(ctx); cause != nil {
			return "", slept, cause
		}
		reason := wake{}
		if err == nil {
			reason = wakeReason(f)
			w.noteTold(reason)
		}
		if err != nil || reason.text != "" {
			if slept {
				w.toldStuck = false
				w.presence.show(ctx, "")
			}
			return reason.text, slept, err
		}
		if !slept {
			slept = true
			if err := w.presence.setStatus(ctx, muster.Idle, muster.IdleMessages, "waits for the team"); err != nil {
				return "", slept, err
			}
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-tick.C:
		}
	}
}

// watch returns one channel for all changes that may concern a sleeping lead.
func (w *leadWait) watch(ctx context.Context) <-chan struct{} {
	all := make(chan struct{}, 1)
	for _, c := range []<-chan struct{}{
		w.Post.Watch(ctx, w.name()), w.Board.Watch(ctx), w.Roster.Watch(ctx), w.Requests.Watch(ctx),
	} {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case _, ok := <-c:
					if !ok {
						return
					}
					select {
					case all <- struct{}{}:
					default:
					}
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
}

// facts reads the facts of the lead's sleep. With mail nothing else matters, and is not read.
func (w *leadWait) facts(ctx context.Context, landings bool) (f wakeFacts, err error) {
	if f.mail, err = w.conversation.hasWakingMail(ctx); err != nil || f.mail {
		return f, err
	}
	if f.progress, err = w.Progress(ctx); err != nil {
		return wakeFacts{}, err
	}
	if landings {
		if f.landing, err = w.conversation.newLanding(ctx); err != nil {
			return wakeFacts{}, err
		}
	}
	for _, r := range f.progress.Requests {
		if last, ok := w.toldRequest[r.ID]; !ok || time.Since(last) >= remindAfter {
			f.requests = append(f.requests, r)
		}
	}
	for _, t := range f.progress.Unclaimable {
		if !w.toldUnclaimable[claimKey(t)] {
			f.unclaimable = append(f.unclaimable, t)
		}
	}
	return f, nil
}

// wake is what a woken lead reads, and which requests and tasks it is told of by that.
// Without a text it sleeps on.
type wake struct {
	text    string
	request muster.RequestID
	tasks   []muster.Task
}

// wakeReason decides what wakes the lead. A request may also be decided by the user, so that
// the lead is told of it when it would sleep, and then now and again; it may also sleep on.
func wakeReason(f wakeFacts) wake {
	switch {
	case f.mail:
		return wake{text: mailWaits}
	case f.progress.Done():
		return wake{text: allDoneText(f.progress)}
	case f.landing != "":
		return wake{text: f.landing}
	case f.progress.Stuck != "":
		return wake{text: "Nothing can wake you: " + f.progress.Stuck + "."}
	case len(f.requests) > 0:
		r := f.requests[0]
		return wake{request: r.ID, text: fmt.Sprintf("Request %s of %s (%s, task #%d) waits for your decision. "+
			"Decide it, or wait again to leave it to the user.", r.ID, r.From, r.Kind, r.TaskID)}
	case len(f.unclaimable) > 0:
		var reasons []string
		for _, t := range f.unclaimable {
			reasons = append(reasons, unclaimedReason(t)+" ("+prompt.TaskLine(t)+")")
		}
		return wake{tasks: f.unclaimable, text: "Nobody may take what is ready: " + strings.Join(reasons, "; ") + "."}
	}
	return wake{}
}

// noteTold notes what the lead is told, so that it is not woken for the same again.
func (w *leadWait) noteTold(reason wake) {
	if reason.request != "" {
		w.toldRequest[reason.request] = time.Now()
	}
	for _, t := range reason.tasks {
		w.toldUnclaimable[claimKey(t)] = true
	}
}

// allDoneText says that nothing is open, and names what needs attention.
func allDoneText(p TeamProgress) string {
	text := fmt.Sprintf("All done: %d tasks landed, nothing is open.", p.Landed)
	if p.Landed == 1 {
		text = "All done: 1 task landed, nothing is open."
	}
	for _, t := range p.NeedsAttention {
		text += fmt.Sprintf(" Task #%d (%s) needs attention: %s.", t.ID, t.Subject, t.Result)
	}
	return text
}
