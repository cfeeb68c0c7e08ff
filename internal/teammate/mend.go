package teammate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/prompt"
	"muster/llm"
)

// How long a member is parked when its model stays overloaded after all tries: so long, twice as long, ...
const (
	parkFor  = time.Minute
	maxParks = 10
)

// mend decides what follows an error that ended a WORK phase: again (the phase goes on), an end of the member's life
// (end or err set), or, with neither, the member goes to rest.
func (m *Member) mend(ctx context.Context, err error) (again bool, end End, _ error) {
	var e *llm.Error
	switch {
	case errors.Is(err, errTurns), errors.Is(err, errLoop):
		if m.lead() {
			return false, End{Code: 3}, &TeamStop{Err: fmt.Errorf("the lead met %w", err)}
		}
		return false, End{}, m.letGo(ctx, board.Release{Reason: err.Error(), Note: m.lastWords(), Counts: true, By: m.name()})
	case !errors.As(err, &e):
		return false, End{Code: 1}, err
	}
	switch e.Kind {
	case llm.ContextFull:
		if m.refreshed() {
			return m.giveUp(ctx, err)
		}
		return true, End{}, m.startAfresh(ctx)
	case llm.Overloaded, llm.Incomplete:
		return m.park(ctx, err)
	case llm.Denied, llm.Limited, llm.Spent:
		return false, End{Code: 3}, &TeamStop{Err: err} // concerns everybody
	}
	return m.giveUp(ctx, err)
}

// TeamStop is an error of one member that stops the whole team, with its state as it is: a refused key, a spend limit,
// a limit that the lead met.
type TeamStop struct{ Err error }

func (e *TeamStop) Error() string { return e.Err.Error() }
func (e *TeamStop) Unwrap() error { return e.Err }

// maxQuote is how much of an error or of a model's words goes into a mail.
const maxQuote = 4000

// giveUp ends a member whose model cannot go on: the lead's run ends, a teammate's task goes back and the lead is told.
func (m *Member) giveUp(ctx context.Context, err error) (bool, End, error) {
	if m.lead() {
		return false, End{Code: 1}, err
	}
	why := clip(err.Error(), maxQuote)
	t, had := m.Hand()
	if e := m.letGo(ctx, board.Release{Reason: "its owner's model failed", Note: why, Counts: true, By: m.name()}); e != nil {
		return false, End{}, e
	}
	text := fmt.Sprintf("%s is shut down: %s", m.name(), why)
	if had {
		text += fmt.Sprintf("\nIts task #%d is back on the board.", t.ID)
	}
	_, e := m.Post.Send(ctx, muster.Message{Type: muster.MailError, From: muster.System, To: muster.Lead, Content: text})
	return false, End{Text: why}, e
}

// park waits, visibly, for a model that stayed overloaded after all tries, and goes on by itself.
func (m *Member) park(ctx context.Context, err error) (bool, End, error) {
	m.mu.Lock()
	m.phase.parks++
	n := m.phase.parks
	m.mu.Unlock()
	if n > maxParks {
		return m.giveUp(ctx, err)
	}
	until := time.Now().Add(time.Duration(n) * parkFor)
	m.parked(until, err)
	wait := time.NewTimer(time.Until(until))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return false, End{}, context.Cause(ctx)
	}
	m.unparked(ctx)
	return true, End{}, nil
}

// startAfresh meets a full context: a fresh conversation with identity, task, and what the lane holds.
func (m *Member) startAfresh(ctx context.Context) error {
	texts := []string{m.identity(), prompt.Reminder("Your conversation had grown too long and starts again here.")}
	var marks []muster.MessageID
	if m.lead() {
		board, err := m.boardNow(ctx)
		if err != nil {
			return err
		}
		texts = append(texts, m.Record.Prompt, board)
	}
	if t, ok := m.Hand(); ok {
		text, mark, err := m.brief(ctx, t)
		if err != nil {
			return err
		}
		texts, marks = append(texts, text), append(marks, mark)
	} else if !m.lead() {
		texts = append(texts, m.Record.Prompt)
	}
	m.mu.Lock()
	m.phase.fresh, m.phase.replies = true, 0
	m.mu.Unlock()
	return m.write(ctx, m.script.Fresh, marks, texts)
}

// boardNow is the open tasks as a lead reads them that has forgotten what it made.
func (m *Member) boardNow(ctx context.Context) (string, error) {
	o, err := m.Look(ctx)
	if err != nil || len(o.Open)+len(o.Needy) == 0 {
		return "", err
	}
	lines := []string{"These tasks are on the board:"}
	for _, t := range append(o.Open, o.Needy...) {
		lines = append(lines, prompt.TaskLine(t))
	}
	return strings.Join(lines, "\n"), nil
}

// refreshed reports whether even the fresh conversation is too long.
func (m *Member) refreshed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.phase.fresh && m.phase.replies < 3
}

// lastWords are what the model said last; after a restart they are read from the conversation.
func (m *Member) lastWords() string {
	m.mu.Lock()
	text := m.phase.words
	m.mu.Unlock()
	if text != "" {
		return text
	}
	messages := m.script.Messages()
	if n := len(messages); n > 0 && messages[n-1].Role == llm.Assistant {
		return words(messages[n-1])
	}
	return ""
}
