package teammate

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/failpoint"
	"muster/internal/prompt"
	"muster/journal"
	"muster/llm"
	"muster/loop"
)

// Request is what to send now. System and tools are byte-stable, messages are only ever appended to.
func (m *Member) Request(ctx context.Context) (llm.Request, error) {
	p := m.profile()
	m.mu.Lock()
	m.phase.turns++
	m.turns++
	m.phase.asked = time.Now()
	turn, all := m.phase.turns, m.turns
	m.mu.Unlock()
	m.event(ctx, journal.TurnStarted, map[string]any{"turn": turn, "turns": all})
	return llm.Request{System: p.system, Tools: p.specs, Messages: m.script.Messages(), MaxTokens: p.MaxTokens,
		CacheKey: m.agentID()}, nil
}

// Append makes a finished reply durable and meters it.
func (m *Member) Append(ctx context.Context, r llm.Reply) error {
	if err := m.script.Reply(ctx, r); err != nil {
		return err
	}
	failpoint.Hit("teammate.replied")
	limits := m.profile().Limits
	m.mu.Lock()
	m.phase.stop = r.Stop
	m.phase.words = words(r.Message)
	m.phase.calls(r.Message.Calls())
	m.phase.todo = m.phase.todo || slices.ContainsFunc(r.Message.Calls(), m.todo.Owns)
	seconds := time.Since(m.phase.asked).Seconds()
	m.phase.replies++
	turn := m.phase.turns
	endless := r.Stop == llm.StopPaused && limits.Turns > 0 && turn > 2*limits.Turns // no boundary comes by to see it
	m.mu.Unlock()
	m.unparked(ctx)
	m.meter(ctx, r, map[string]any{"turn": turn, "seconds": round(seconds)})
	if endless {
		return errTurns
	}
	return nil
}

// meter writes what a reply has cost; more is what else is known of the turn.
func (m *Member) meter(ctx context.Context, r llm.Reply, more map[string]any) {
	fields := map[string]any{"stop": r.Stop, "model": r.Model, "input": r.Usage.Input, "output": r.Usage.Output,
		"cache_read": r.Usage.CacheRead, "cache_write": r.Usage.CacheWrite}
	maps.Copy(fields, more)
	m.event(ctx, journal.TurnEnded, fields)
}

// Answer makes the result of one call durable. A call that the end of the process cut off stays open if records will
// answer it: whoever goes on with the conversation asks them.
func (m *Member) Answer(ctx context.Context, r llm.Result) error {
	p := m.profile()
	m.mu.Lock()
	open := m.unsaid[r.ID]
	if !open {
		m.phase.answered(r, p.polls)
	}
	m.mu.Unlock()
	if open {
		return nil
	}
	defer failpoint.Hit("teammate.answered")
	return m.script.Result(ctx, r)
}

// Emit shows what happens in a turn.
func (m *Member) Emit(e loop.Event) { m.Config.Emit(e) }

// Boundary is where things from outside enter, and limits act.
func (m *Member) Boundary(ctx context.Context, b loop.Boundary) (bool, error) {
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	m.mu.Lock()
	over := m.leaving || m.phase.over
	m.mu.Unlock()
	if over {
		return false, nil
	}
	came, err := m.deliver(ctx, b == loop.BeforeStop)
	if err != nil {
		return false, err
	}
	announced, err := m.announce(ctx)
	if err != nil {
		return false, err
	}
	if b == loop.BeforeStop {
		return m.beforeStop(ctx, came || announced)
	}
	return true, m.between(ctx)
}

// beforeStop decides whether the phase goes on though the model has called no tool.
func (m *Member) beforeStop(ctx context.Context, came bool) (bool, error) {
	m.mu.Lock()
	stop, inHand, reminded, cut := m.phase.stop, m.hand, m.phase.reminded, m.phase.cut
	// One that waits for something has not stopped, and a lead that was told that nothing moves knows what it has in hand.
	waits := len(m.asked) > 0 || m.jobs.Running() > 0 || m.told
	m.phase.reminded = m.phase.reminded || inHand != nil && stop == llm.StopEnd && !waits
	if stop == llm.StopMax {
		m.phase.cut++
	}
	m.mu.Unlock()
	switch {
	case came:
		return true, nil
	case stop == llm.StopMax && cut < 3:
		return true, m.say(ctx, nil, prompt.Reminder("Your reply was cut at its length limit and none of its calls was run. Go on in smaller steps."))
	case inHand != nil && stop == llm.StopEnd && !reminded && !waits:
		return true, m.say(ctx, nil, prompt.Reminder(
			"Task #%d is still yours. If it is done, call complete_task; if you cannot do it, release_task; if you wait for an answer, just end your turn.", inHand.ID))
	}
	return false, nil
}

// event writes what happened to the journal. The journal drives nothing: a failure to write it is not the turn's.
func (m *Member) event(ctx context.Context, kind string, fields map[string]any) {
	e := muster.Event{Kind: kind, Member: m.name(), Fields: fields}
	if t, ok := m.Hand(); ok {
		e.Task = t.ID
	}
	_ = m.Journal.Emit(context.WithoutCancel(ctx), e)
}

// words is the text of a message.
func words(msg llm.Message) string {
	var b strings.Builder
	for _, p := range msg.Parts {
		if t, ok := p.(llm.Text); ok {
			b.WriteString(t.Text)
		}
	}
	return strings.TrimSpace(b.String())
}

func round(seconds float64) float64 { return float64(int(seconds*1000)) / 1000 }
