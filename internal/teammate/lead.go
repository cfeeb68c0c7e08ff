package teammate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/mailbox"
	"muster/internal/prompt"
	"muster/internal/transcript"
	"muster/llm"
	"muster/tool"
)

// Wait is the lead's sleep: it returns when something needs it, at no cost until then. It is level-triggered: asked
// again in the same situation it answers the same.
func (m *Member) Wait(ctx context.Context, landings bool) (llm.Result, error) {
	if t, ok := m.Hand(); ok {
		return llm.ErrorResult("Task #%d is in your own hand: complete it or give it back before you wait.", t.ID), nil
	}
	text, slept, err := m.sleep(ctx, landings)
	if err != nil {
		return llm.Result{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case slept: // its phase is from a wake to its next wait; a wait that does not sleep is a turn like any other
		m.phase.turns, m.phase.extra, m.phase.spins = 0, false, 0
	case text != mailWaits:
		if m.phase.spins++; m.phase.spins >= repeatEnd { // told the same again and again, it does nothing about it
			return llm.Result{}, errLoop
		}
	}
	return tool.Text(text), nil
}

// lookAgain is how often a sleeping lead looks without a hint.
const lookAgain = time.Minute

// sleep waits until something needs the lead, and says what.
func (m *Member) sleep(ctx context.Context, landings bool) (text string, slept bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hints := m.hints(ctx)
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		text, err := m.needed(ctx, landings)
		if cause := context.Cause(ctx); cause != nil {
			return "", slept, cause
		}
		if err != nil || text != "" {
			if slept {
				m.told = false
				m.show(ctx, "")
			}
			return text, slept, err
		}
		if !slept {
			slept = true
			if err := m.status(ctx, muster.Idle, muster.IdleMessages, "waits for the team"); err != nil {
				return "", slept, err
			}
		}
		select {
		case <-ctx.Done():
		case <-hints:
		case <-tick.C:
		}
	}
}

// hints is one channel for all that may concern a sleeping lead.
func (m *Member) hints(ctx context.Context) <-chan struct{} {
	all := make(chan struct{}, 1)
	for _, c := range []<-chan struct{}{
		m.Post.Watch(ctx, m.name()), m.Board.Watch(ctx), m.Roster.Watch(ctx), m.Requests.Watch(ctx),
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

// restLead decides what follows when the lead's turn ended in text.
func (m *Member) restLead(ctx context.Context) (End, bool, error) {
	last := m.lastWords()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var hints <-chan struct{} // before the first look, so that nothing is missed
	if m.inTalk() {
		hints = m.hints(ctx)
	}
	for {
		if heard, err := m.heard(ctx); err != nil || heard {
			return End{Code: 1}, heard, err
		}
		o, err := m.Look(ctx)
		if err != nil {
			return End{Code: 1}, false, err
		}
		end, over := m.verdict(o, last)
		held := m.onHold()
		switch {
		case (over || held) && hints != nil && m.inTalk():
			if err := m.listen(ctx, hints, o.Done()); err != nil {
				return End{}, false, err
			}
			continue
		case over:
			return end, false, nil
		case len(o.Open) == 0: // somebody still talks; it is not asked again
			m.yours(false)
			if err := m.pause(ctx); err != nil {
				return End{}, false, err
			}
			continue
		case o.Stuck != "":
			m.told = true
			return End{}, true, m.say(ctx, nil, prompt.Reminder(
				"You ended your turn, but %s and nothing can move: %s. Do something about it, or end again to stop the run with this work left.",
				opened(len(o.Open)), mailbox.Escape(o.Stuck)))
		}
		m.yours(false)
		text, _, err := m.sleep(ctx, false)
		if err != nil {
			return End{}, false, err
		}
		if err := m.say(ctx, nil, prompt.Reminder("%s", mailbox.Escape(text))); err != nil {
			return End{}, false, err
		}
		_, err = m.deliver(ctx, false)
		return End{}, true, err
	}
}

// verdict is how the run ends now that the lead has spoken; over is false where it goes on.
func (m *Member) verdict(o Outlook, last string) (end End, over bool) {
	switch {
	case m.cutOff() != "": // a limit or a refusal is no success, whatever else holds
		return End{Code: 3, Text: m.cutOff()}, true
	case len(o.Open) == 0 && len(o.Talking) > 0: // until they are idle
		return End{}, false
	case len(o.Open) == 0 && len(o.Unread) > 0:
		return End{Code: 3, Text: strings.TrimSpace(last + "\n" + unread(o.Unread[0]) + "; mend it, or put it aside: muster doctor")}, true
	case len(o.Open) == 0 && len(o.Needy) > 0:
		return End{Code: 3, Text: last}, true
	case len(o.Open) == 0:
		return End{Text: last}, true
	case o.Stuck != "" && m.told:
		return End{Code: 3, Text: o.Stuck}, true
	}
	return End{}, false
}

// LeadEnd returns how a run ended whose lead has shut down, from the lead's transcript and the board: what verdict said
// to a process that was killed before it could tell.
func (r Rooms) LeadEnd(ctx context.Context) (End, error) {
	lead := Member{Config: Config{Rooms: r, Record: muster.Member{Name: muster.Lead}}}
	for e, err := range transcript.Read(ctx, r.Store.Log(), muster.Lead, 0) {
		switch {
		case errors.Is(err, muster.ErrCorrupt):
		case err != nil:
			return End{Code: 1}, err
		case e.Kind == transcript.KindReply && e.Message != nil:
			lead.phase.words, lead.phase.stop = words(*e.Message), e.Stop
		}
	}
	o, err := r.Look(ctx)
	if err != nil {
		return End{Code: 1}, err
	}
	end, over := lead.verdict(o, lead.phase.words)
	if !over {
		end = End{Text: lead.phase.words}
	}
	return end, nil
}

// cutOff says why the model's last reply was no answer; "" when it was one.
func (m *Member) cutOff() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch m.phase.stop {
	case llm.StopRefused:
		return strings.TrimSpace(string(m.name()) + "'s model refused: " + clip(m.phase.words, maxQuote))
	case llm.StopMax:
		return string(m.name()) + "'s reply was cut at its length limit again and again"
	}
	return ""
}

// onHold reports whether the user stopped the last turn: what comes next is the user's to say.
func (m *Member) onHold() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.phase.held
}

// heard delivers mail if some of it is the user's: whatever else holds, what the user says is heard. In a conversation
// the lead hears everybody, unless the user stopped it to speak first.
func (m *Member) heard(ctx context.Context) (bool, error) {
	msgs, err := m.Post.Waking(ctx, m.name(), m.inbox)
	if err != nil {
		return false, err
	}
	everybody := m.inTalk() && !m.onHold()
	if !slices.ContainsFunc(m.fresh(ctx, msgs), func(msg muster.Message) bool { return msg.From == muster.User || everybody }) {
		return false, nil
	}
	m.told = false
	return m.deliver(ctx, true)
}

// pause sleeps until a member, the board or the lead's mail has changed.
func (m *Member) pause(ctx context.Context) error {
	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	hints := m.hints(watch)
	if err := m.status(ctx, muster.Idle, muster.IdleMessages, "waits for the team"); err != nil {
		return err
	}
	// What changed before the watch began is seen now.
	if o, err := m.Look(ctx); err != nil || len(o.Open) > 0 || len(o.Talking) == 0 {
		return err
	}
	tick := time.NewTimer(lookAgain)
	defer tick.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-hints:
	case <-tick.C:
	}
	return nil
}
