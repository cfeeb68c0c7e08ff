package teammate

import (
	"errors"
	"strings"
	"testing"

	"muster"
	"muster/llm"
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

// At the turn limit the member is reminded and gets as many turns again; then the phase ends. Without a number of the
// settings a phase has 200 turns. A paused reply passes no boundary.
func TestTheTurnLimitIsExtendedOnce(t *testing.T) {
	for setting, limit := range map[int]int{0: phaseTurns, 1: 1, 7: 7} {
		c := counters{}
		for n := 1; n <= 2*limit; n++ {
			c.turns++
			c.still.changed = true
			c.countRound(false)
			step := c.betweenRounds(setting)
			if ended := errors.Is(step.err, errTurns); ended != (n == 2*limit) || (step.reminder != "") != (n == limit) {
				t.Fatalf("with %d, turn %d: %+v", setting, n, step)
			}
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
