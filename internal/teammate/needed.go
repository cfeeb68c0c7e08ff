package teammate

import (
	"context"
	"fmt"
	"time"

	"muster"
	"muster/internal/prompt"
)

// sleeper is what only a lead has: what it was told while it slept or ended its turn.
type sleeper struct {
	told    bool                           // that nothing can go on
	untaken map[muster.MessageID]bool      // the claims-to-be that nobody may take, each told once
	asks    map[muster.RequestID]time.Time // when it was told last that a request waits for it
}

func newSleeper() sleeper {
	return sleeper{untaken: map[muster.MessageID]bool{}, asks: map[muster.RequestID]time.Time{}}
}

// remindAfter is how long the lead may leave a request undecided, for the user perhaps, before it is told again.
const remindAfter = 10 * time.Minute

// mailWaits is why a lead is woken most often.
const mailWaits = "There is mail for you."

// needed says why the lead is needed now, or "".
func (m *Member) needed(ctx context.Context, landings bool) (string, error) {
	wakes, err := m.mailWakes(ctx)
	if err != nil {
		return "", err
	}
	if wakes {
		return mailWaits, nil
	}
	o, err := m.Look(ctx)
	if err != nil {
		return "", err
	}
	if o.Done() {
		return allDone(o), nil
	}
	if landings {
		if text, err := m.newLanding(ctx); err != nil || text != "" {
			return text, err
		}
	}
	if o.Stuck != "" {
		return "Nothing can wake you: " + o.Stuck + ".", nil
	}
	if text := m.undecided(o.Asks); text != "" {
		return text, nil
	}
	return m.unclaimable(o.Untaken), nil
}

// newLanding is the news of a landing that waits in the inbox.
func (m *Member) newLanding(ctx context.Context) (string, error) {
	msgs, err := m.Post.Landings(ctx, m.name(), m.inbox)
	if err != nil {
		return "", err
	}
	for _, msg := range m.fresh(ctx, msgs) {
		return msg.Content, nil
	}
	return "", nil
}

// undecided tells of a request that the lead was given and did not decide: when it would sleep, and then now and again.
// The user may decide it too, so it may also sleep on.
func (m *Member) undecided(asks []muster.Request) string {
	for _, r := range asks {
		if last, ok := m.asks[r.ID]; ok && time.Since(last) < remindAfter {
			continue
		}
		m.asks[r.ID] = time.Now()
		return fmt.Sprintf("Request %s of %s (%s, task #%d) waits for your decision. Decide it, or wait again to leave it to the user.", r.ID, r.From, r.Kind, r.TaskID)
	}
	return ""
}

// unclaimable tells once of ready tasks that no living teammate may take, while others go on.
func (m *Member) unclaimable(tasks []muster.Task) string {
	text := ""
	for _, t := range tasks {
		key := claimMark(t)
		if m.sleeper.untaken[key] {
			continue
		}
		m.sleeper.untaken[key] = true
		if text != "" {
			text += "; "
		}
		text += untaken(t) + " (" + prompt.TaskLine(t) + ")"
	}
	if text == "" {
		return ""
	}
	return "Nobody may take what is ready: " + text + "."
}

func allDone(o Outlook) string {
	text := fmt.Sprintf("All done: %d tasks landed, nothing is open.", o.Landed)
	if o.Landed == 1 {
		text = "All done: 1 task landed, nothing is open."
	}
	for _, t := range o.Needy {
		text += fmt.Sprintf(" Task #%d (%s) needs attention: %s.", t.ID, t.Subject, t.Result)
	}
	return text
}
