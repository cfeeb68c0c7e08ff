package teammate

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"muster"
	"muster/internal/board"
	"muster/journal"
	"muster/llm"
)

// A model that calls idle has ended its phase: mail that came meanwhile begins the next one.
func TestIdleEndsThePhase(t *testing.T) {
	live(t, "alice", func(l *life) {
		l.start(calls("idle", nil, func() { l.send(muster.MailMessage, muster.Lead, "alice", "one more") }), says("Noted."))
		turns := l.events(journal.TurnStarted)
		if len(turns) != 2 || turns[1].Fields["turn"] != 1.0 || !strings.Contains(l.heard(), "one more") {
			l.Errorf("the turns are %v; she hears %s", turns, l.heard())
		}
		l.turns = []turn{calls("idle", nil)}
		l.send(muster.MailMessage, muster.Lead, "alice", "and more")
		if synctest.Wait(); l.record("alice").IdleReason != muster.IdleTasks {
			l.Errorf("she is idle: %s", l.record("alice").IdleReason)
		}
	})
}

// Why a member is idle: it waits for an answer, or for tasks, or its model has stopped; a restarted one that was idle
// is idle for the same reason.
func TestIdleReason(t *testing.T) {
	atWork, idle := muster.Member{Status: muster.Working}, muster.Member{Status: muster.Idle, IdleReason: muster.IdleTasks}
	begun := counters{turns: 1}
	begun.started = begun.started.AddDate(1, 0, 0)
	over := begun
	over.over = true
	for _, c := range []struct {
		counters counters
		asks     bool
		latest   muster.Member
		want     muster.IdleReason
	}{
		{begun, true, idle, muster.IdleMessages}, {over, false, atWork, muster.IdleTasks},
		{counters{}, false, idle, muster.IdleTasks}, {counters{}, false, atWork, muster.IdleNoToolUse},
		{begun, false, idle, muster.IdleNoToolUse}, {begun, false, atWork, muster.IdleNoToolUse},
	} {
		if got := c.counters.idleReason(c.asks, c.latest); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// A member that stops with a task in hand is reminded of it twice, unless it waits for an answer or a job. Then the lead
// is woken: the mail is no news.
func TestAMemberIsRemindedOfItsTask(t *testing.T) {
	for name, c := range map[string]struct {
		first     turn
		asked     int
		reminders int
	}{
		"it does nothing": {says("I stop."), 3, 2},
		"it has asked":    {calls("send_message", map[string]any{"to": "lead", "content": "What now?"}), 2, 0},
		"it has written":  {calls("send_message", map[string]any{"to": "lead", "content": "All well."}), 4, 2},
		"a job runs":      {calls("bash", map[string]any{"command": "make", "background": true}), 2, 0},
	} {
		live(t, "alice", func(l *life) {
			l.create(board.Draft{})
			l.start(c.first)
			n := strings.Count(l.heard(), "Task #1 is still yours")
			if len(l.asked) != c.asked || n != c.reminders {
				l.Errorf("%s: asked %d times, reminded %d times", name, len(l.asked), n)
			}
			isTold := func(m muster.Message) bool {
				return !m.Type.News() && strings.Contains(m.Content, "task #1 (the parser) in hand, though it was reminded") &&
					strings.Contains(m.Content, "Nothing more.")
			}
			if slices.ContainsFunc(l.mail(muster.Lead), isTold) != (n > 0) {
				l.Errorf("%s: the lead reads %+v", name, l.mail(muster.Lead))
			}
			l.jobs.Stop()
		})
	}
}

// A reply that is paused or cut again and again ends the phase, and the lead is told of one that was cut.
func TestRepliesWithoutAnEndEndThePhase(t *testing.T) {
	for stop, c := range map[llm.Stop]struct {
		asked int
		tells string
	}{
		llm.StopPaused:  {5, "on"},
		llm.StopMax:     {1 + maxCutReplies, "cut at its length limit again and again"},
		llm.StopRefused: {2, "refused: on"},
	} {
		live(t, "alice", func(l *life) {
			l.config.Limits.Turns = 2
			l.restart("alice")
			var turns []turn
			for range 10 {
				turns = append(turns, stops(stop, "on"))
			}
			l.start(turns...)
			mail := l.mail(muster.Lead)
			if l.hasEnded() || len(l.asked) != c.asked || len(mail) != 2 || !strings.Contains(mail[0].Content, c.tells) {
				l.Errorf("%s: asked %d times, the lead reads %+v; %v", stop, len(l.asked), mail, l.err)
			}
		})
	}
}

// A member is reminded of a todo list with open items that it leaves alone for three rounds.
func TestAMemberIsRemindedOfItsTodoList(t *testing.T) {
	live(t, "alice", func(l *life) {
		reminders := func(want int) turn {
			return func(r llm.Request) (llm.Reply, error) {
				if n := strings.Count(l.heard(), "Your todo list has open items"); n != want {
					l.Errorf("turn %d: she is reminded %d times", len(l.asked), n)
				}
				return calls("task_get", map[string]any{"task_id": len(l.asked)})(r)
			}
		}
		l.config.Limits.TodoReminder = 3
		l.restart("alice")
		l.start(calls("todo", map[string]any{"items": []map[string]any{{"id": "1", "text": "one", "status": "pending"}}}),
			reminders(0), reminders(0), reminders(0), reminders(1), reminders(1), reminders(1), says("Done."))
		if strings.Count(l.heard(), "Your todo list has open items") != 2 {
			l.Errorf("at last she hears %s", l.heard())
		}
	})
}

// At a boundary where both come together, one reminder is given, and the turns are granted with it.
func TestOneReminderAtABoundary(t *testing.T) {
	three := repeats{equal: [maxPattern]int{2}}
	for name, c := range map[string]struct{ before, after counters }{
		"a repeat at the limit":         {counters{turns: 5, repeats: three}, counters{extended: true}},
		"a repeat before the limit":     {counters{turns: 4, repeats: three}, counters{turns: 4}},
		"a repeat past the first limit": {counters{turns: 5, repeats: three, extended: true}, counters{turns: 5, extended: true}},
	} {
		step := c.before.betweenRounds(5)
		if step.err != nil || !step.goOn || !strings.Contains(step.reminder, "three times") ||
			c.before.turns != c.after.turns || c.before.extended != c.after.extended || !c.before.repeats.warned {
			t.Errorf("%s: %+v, %+v", name, step, c.before)
		}
	}
	paused := counters{paused: 3}
	if !paused.isEndless(1) {
		t.Error("a limit of one turn is a limit")
	}
}

// Calls repeat only with the same tool, the same input and the same result; a call in between ends a row of waits.
func TestWhatCountsAsARepeat(t *testing.T) {
	c := counters{}
	for _, input := range []string{`{"command":"ls"}`, `{"command":"pwd"}`} {
		if c.round("bash", input, "a"); c.repeated() != 1 {
			t.Errorf("%s counts %d", input, c.repeated())
		}
	}
	if c.round("read_file", `{"command":"pwd"}`, "a"); c.repeated() != 1 {
		t.Errorf("another tool counts %d", c.repeated())
	}
	for range repeatEnd - 1 {
		c.countWait(false, false)
	}
	if c.round("bash", `{}`, "b"); c.countWait(false, false) {
		t.Error("a wait after another call is a loop")
	}
	if c.round("bash", `{}`, "c"); c.repeated() != 1 {
		t.Errorf("another result counts %d", c.repeated())
	}
	c.round("wait", `{}`, "woken")
	if c.round("bash", `{}`, "c"); c.repeated() != 2 {
		t.Errorf("with a wait in between it counts %d", c.repeated())
	}
}
