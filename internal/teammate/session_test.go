package teammate

import (
	"errors"
	"strings"
	"testing"

	"muster"
	"muster/llm"

	"pgregory.net/rapid"
)

// round counts a round with one call in which the model calls a tool and gets a result.
func (c *counters) round(name, input, result string) {
	call := llm.Call{ID: "1", Name: name, Input: []byte(input)}
	c.turns++
	c.countReply(llm.Reply{Message: llm.Message{Parts: []llm.Part{call}}}, func(llm.Call) bool { return false })
	c.countResult(llm.Result{ID: "1", Parts: []llm.Part{llm.Text{Text: result}}}, map[string]toolEffects{"wait": {polls: true}})
	c.countRound(false)
}

// repeated returns how often the last calls have come in turn.
func (c *counters) repeated() int {
	times, _ := c.repeats.times()
	return times
}

// At the turn limit the member is reminded and gets as many turns again; then the phase ends.
func TestTheTurnLimitIsExtendedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 20).Draw(t, "limit")
		c, reminders := counters{}, 0
		for n := 1; ; n++ {
			c.turns++
			step := c.betweenRounds(limit)
			if step.reminder != "" {
				reminders++
			}
			if step.err != nil {
				if !errors.Is(step.err, errTurns) || n != 2*limit || reminders != 1 {
					t.Fatalf("after %d turns and %d reminders: %v", n, reminders, step.err)
				}
				return
			}
		}
	})
}

// Without a number of the settings a phase has 200 turns, and as many once more; a paused reply passes no boundary.
func TestTurnsWithoutASetting(t *testing.T) {
	c := counters{}
	for n := 1; n <= 2*phaseTurns; n++ {
		c.turns++
		c.still.changed = true
		c.countRound(false)
		step := c.betweenRounds(0)
		if ended := errors.Is(step.err, errTurns); ended != (n == 2*phaseTurns) || (step.reminder != "") != (n == phaseTurns) {
			t.Fatalf("turn %d: %+v", n, step)
		}
	}
	no := func(llm.Call) bool { return false }
	for _, c := range []struct{ setting, most int }{{0, 2 * stillMore}, {3, 6}} {
		n := counters{turns: 150}
		for range c.most {
			if n.countReply(llm.Reply{Stop: llm.StopPaused}, no); n.isEndless(c.setting) {
				t.Fatalf("with %d the replies end too early: %+v", c.setting, n)
			}
		}
		if n.countReply(llm.Reply{Stop: llm.StopPaused}, no); !n.isEndless(c.setting) {
			t.Errorf("with %d the replies never end", c.setting)
		}
		if n.countReply(llm.Reply{}, no); n.isEndless(c.setting) {
			t.Error("a reply that is not paused ends the row")
		}
	}
}

func TestBeforeStop(t *testing.T) {
	for _, c := range []struct {
		name     string
		counters counters
		received bool
		lead     bool
		task     muster.TaskID
		waits    bool
		goOn     bool
		reminder string
	}{
		{name: "it has nothing more to do", counters: counters{stop: llm.StopEnd, words: "So."}},
		{name: "mail came", counters: counters{stop: llm.StopEnd, words: "So."}, received: true, goOn: true},
		{name: "it has a task", counters: counters{stop: llm.StopEnd, words: "So."}, task: 7, goOn: true,
			reminder: "Task #7 is still yours"},
		{name: "it was reminded of its task", counters: counters{stop: llm.StopEnd, words: "So.", reminded: 1}, task: 7, goOn: true,
			reminder: "Task #7 is still yours"},
		{name: "and once more", counters: counters{stop: llm.StopEnd, words: "So.", reminded: 2}, task: 7},
		{name: "it waits with its task", counters: counters{stop: llm.StopEnd, words: "So."}, task: 7, waits: true},
		{name: "its model refused", counters: counters{stop: llm.StopRefused}, task: 7, goOn: true,
			reminder: "You refused"},
		{name: "without a task, too", counters: counters{stop: llm.StopRefused}, goOn: true, reminder: "You refused"},
		{name: "and again", counters: counters{stop: llm.StopRefused, mute: 1}},
		{name: "its reply was empty", counters: counters{stop: llm.StopEnd}, task: 7, goOn: true, reminder: "was empty"},
		{name: "it has no task and nothing to say", counters: counters{stop: llm.StopEnd}},
		{name: "the lead's reply was empty", counters: counters{stop: llm.StopEnd}, lead: true, goOn: true,
			reminder: "was empty"},
		{name: "and again the lead's", counters: counters{stop: llm.StopEnd, mute: 1}, lead: true},
		{name: "empty, but mail came", counters: counters{stop: llm.StopEnd}, received: true, task: 7, goOn: true},
		{name: "its reply was cut", counters: counters{stop: llm.StopMax, cutReplies: 2}, goOn: true,
			reminder: "cut at its length"},
		{name: "and again and again", counters: counters{stop: llm.StopMax, cutReplies: 3}, task: 7},
	} {
		step := c.counters.beforeStop(c.received, c.lead, c.task, c.waits)
		if step.goOn != c.goOn || step.err != nil || (step.reminder == "") != (c.reminder == "") ||
			!strings.Contains(step.reminder, c.reminder) {
			t.Errorf("%s: %+v", c.name, step)
		}
	}
}

func TestCutOffReason(t *testing.T) {
	for stop, want := range map[llm.Stop]string{
		llm.StopEnd: "", llm.StopTools: "", llm.StopRefused: "alice's model refused: no",
		llm.StopMax: "alice's reply was cut at its length limit again and again",
	} {
		if got := cutOffReason("alice", stop, "no"); got != want {
			t.Errorf("%s: %q", stop, got)
		}
	}
	if got := cutOffReason("alice", llm.StopRefused, ""); got != "alice's model refused:" {
		t.Errorf("%q", got)
	}
}

// A lead that waits again and again, and does nothing in between about what it is told at once, is in a loop.
func TestWaitsAreCounted(t *testing.T) {
	c := counters{turns: 9, extended: true}
	for n := 1; n < repeatEnd; n++ {
		if c.countWait(false, false) {
			t.Fatalf("wait %d is a loop", n)
		}
		if c.countWait(false, true) {
			t.Fatal("mail is something to do")
		}
	}
	if c.turns != 9 || !c.countWait(false, false) {
		t.Error("a wait that returns at once is a turn like any other, and six are a loop")
	}
	if c.countWait(true, false) || c.turns != 0 || c.extended {
		t.Error("a wait that has slept begins a new phase")
	}
}
