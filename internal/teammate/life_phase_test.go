package teammate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"muster"
	"muster/internal/board"
	"muster/internal/roles"
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

// A member that stops with a task in hand is reminded of it, unless it waits for an answer or a job. If it stops again,
// its work is completed with its words; without any the task needs attention. If it asks something, the lead is woken:
// the mail is no news.
func TestAMemberIsRemindedOfItsTask(t *testing.T) {
	stop := says("I stop.")
	for name, c := range map[string]struct {
		turns     []turn
		changed   bool
		set       func(*Limits)
		asked     int
		reminders int
		status    muster.TaskStatus
	}{
		"it does nothing":          {[]turn{stop, says("I say.")}, false, nil, 2, 1, muster.NeedsAttention},
		"it has changed something": {[]turn{stop, says("It is done.")}, true, nil, 2, 1, muster.Completed},
		"its work is left to people": {[]turn{stop, says("It is done.")}, true, func(c *Limits) { c.KeepUnattended = true }, 2, 1,
			muster.NeedsAttention},
		"it asks in words": {[]turn{stop, says("Which one is meant?")}, true, nil, 2, 1, muster.InProgress},
		"it has asked": {[]turn{calls("send_message", map[string]any{"to": "lead", "content": "What now?"})}, true, nil, 2, 0,
			muster.InProgress},
		"a job runs": {[]turn{calls("bash", map[string]any{"command": "make", "background": true})}, true, nil, 2, 0, muster.InProgress},
	} {
		live(t, "alice", func(l *life) {
			if l.create(board.Draft{}); c.set != nil {
				c.set(&l.config.Limits)
				l.restart("alice")
			}
			l.rows.changed = c.changed
			l.start(c.turns...)
			n := strings.Count(l.heard(), "Task #1 is still yours")
			if len(l.asked) != c.asked || n != c.reminders {
				l.Errorf("%s: asked %d times, reminded %d times", name, len(l.asked), n)
			}
			if task := l.task(1); task.Status != c.status {
				l.Errorf("%s: the task is %+v", name, task)
			}
			isTold := func(m muster.Message) bool {
				return !m.Type.News() && strings.Contains(m.Content, "task #1 (the parser) in hand.") &&
					strings.Contains(m.Content, "Which one is meant?")
			}
			if slices.ContainsFunc(l.mail(muster.Lead), isTold) != (n > 0 && c.status == muster.InProgress) {
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
		llm.StopPaused:  {6, "on"}, // with the request for its answer
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

func (c *counters) round(name, input, result string) {
	call := llm.Call{ID: "1", Name: name, Input: []byte(input)}
	c.turns++
	c.countReply(llm.Reply{Message: llm.Message{Parts: []llm.Part{call}}}, func(llm.Call) bool { return false })
	c.countResult(llm.Result{ID: "1", Parts: []llm.Part{llm.Text{Text: result}}}, map[string]toolEffects{"wait": {polls: true}})
	c.countRound(false)
}

func (c *counters) repeated() int {
	times, _ := c.repeats.times()
	return times
}

// Calls of a tool that cannot be read for the same reason end the phase at the third, and the reason is named.
func TestTheSameMistakeThreeTimes(t *testing.T) {
	cut := llm.Call{ID: "1", Name: "write_file", Input: []byte("{}"), Malformed: `{"path": "a", "content": "`}
	c, no := counters{}, func(llm.Call) bool { return false }
	for n := 1; n <= 3; n++ {
		cut.Malformed += fmt.Sprint("text ", n)
		c.countReply(llm.Reply{Message: llm.Message{Parts: []llm.Part{cut}}}, no)
		step := c.betweenRounds(0)
		if isEnd := errors.Is(step.err, errMistakes); isEnd != (n == 3) || isEnd != isLimit(step.err) {
			t.Errorf("after %d: %+v", n, step)
		}
		if n == 3 && step.err.Error() != "calls that cannot be read: the arguments of write_file could not be read 3 times "+
			"for the same reason: it ends in the middle" {
			t.Error(step.err)
		}
	}
	live(t, muster.Lead, func(l *life) {
		mistake := func(llm.Request) (llm.Reply, error) {
			return llm.Reply{Message: llm.Message{Role: llm.Assistant, Parts: llm.Parts{cut}}, Stop: llm.StopTools}, nil
		}
		l.start(mistake, mistake, mistake, says("I cannot."), says("I cannot."))
		if len(l.asked) != 4 { // three, and the request for the answer
			l.Errorf("asked %d times: %v", len(l.asked), l.err)
		}
	})
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
	for _, c := range []struct{ setting, most int }{{0, 2 * stillMore}, {1, 2}, {3, 6}} {
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
		{name: "it was reminded of its task", counters: counters{stop: llm.StopEnd, words: "So.", reminded: 1}, task: 7},
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

// One call, or two or three in turn: a reminder after three times, the end after six, whatever was called before.
func TestPatternsOfCalls(t *testing.T) {
	for length := 1; length <= maxPattern; length++ {
		c := counters{}
		c.round("bash", "{}", "before")
		for n := 1; n <= repeatEnd*length; n++ {
			c.round("bash", fmt.Sprintf(`{"command":"%d"}`, n%length), "same")
			step := c.betweenRounds(1000)
			if reminded := strings.Contains(step.reminder, "three times"); reminded != (n == repeatWarn*length) {
				t.Errorf("length %d, call %d: reminder %q", length, n, step.reminder)
			}
			if ended := errors.Is(step.err, errLoop); ended != (n == repeatEnd*length) {
				t.Errorf("length %d, call %d: %v", length, n, step.err)
			}
		}
	}
}

// The counts are those of the plain definition: how often the calls at the end come, in turn.
func TestRepeatsAsDefined(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 60).Draw(t, "calls")
		c := counters{}
		for i, name := range all {
			c.round("bash", name, "same")
			want := 0
			for length := 1; length <= maxPattern; length++ {
				equal := 0
				for k := i; k >= length && all[k] == all[k-length]; k-- {
					equal++
				}
				want = max(want, 1+equal/length)
			}
			if got := c.repeated(); got != want {
				t.Fatalf("%v: %d times, want %d", all[:i+1], got, want)
			}
		}
	})
}

// Calls that run side by side are counted in the order in which the model made them, not in that of their results.
func TestRepeatsOfCallsSideBySide(t *testing.T) {
	c := counters{}
	for n := 1; n <= repeatWarn; n++ {
		a, b := llm.Call{ID: "a", Name: "read_file", Input: []byte("1")}, llm.Call{ID: "b", Name: "read_file", Input: []byte("2")}
		c.countReply(llm.Reply{Message: llm.Message{Parts: []llm.Part{a, b}}}, func(llm.Call) bool { return false })
		ids := []string{"a", "b"}
		if n%2 == 0 {
			ids = []string{"b", "a"}
		}
		for _, id := range ids {
			c.countResult(llm.Result{ID: id, Parts: []llm.Part{llm.Text{Text: id}}}, nil)
		}
		c.countRound(false)
	}
	if times, length := c.repeats.times(); times != repeatWarn || length != 2 {
		t.Errorf("%d times a pattern of %d", times, length)
	}
}

// The counts of a standstill act at the rounds since the last change, whatever came before.
func TestStandstillAsDefined(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		setting := rapid.SampledFrom([]int{0, 1000}).Draw(t, "max_turns")
		c, still := counters{}, 0
		for n := 0; ; n++ {
			changed := n < 300 && rapid.IntRange(0, 40).Draw(t, "change") == 0
			c.still.changed = changed
			c.hasTask = true
			c.round("read_file", fmt.Sprint(n), "some")
			if still++; changed {
				still = 0
			}
			step := c.betweenRounds(setting)
			reminds := still == stillRemind || still == stillMore && setting == 0
			if (step.reminder != "") != reminds || step.tellOthers != (still == stillTell) {
				t.Fatalf("%d rounds after a change: %+v", still, step)
			}
			if ended := errors.Is(step.err, errStandstill); ended != (still == stillEnd && setting == 0) || !ended && !step.goOn {
				t.Fatalf("%d rounds after a change: %+v", still, step)
			}
			if step.err != nil || still > 2*stillEnd {
				return
			}
			c.turns = 0 // the turn limit is another one
		}
	})
}

// unlimited gives the member a task, and no limit of turns but its own.
func (l *life) unlimited() {
	l.config.Limits.Turns = 0
	l.restart(l.Member.record.Name)
	l.create(board.Draft{})
}

func reads(n int) (all []turn) {
	for i := range n {
		all = append(all, calls("glob", map[string]any{"pattern": fmt.Sprint("f", i)}))
	}
	return all
}

// A member that reads for ever is reminded, the lead is told once, and the task goes back and counts.
func TestAStandstillEndsThePhase(t *testing.T) {
	live(t, "alice", func(l *life) {
		l.unlimited()
		l.start(reads(1000)...)
		if len(l.asked) < stillEnd {
			l.Fatalf("asked %d times", len(l.asked))
		}
		before := func(n int) string { return fmt.Sprint(l.asked[n].Messages) } // what she has read when n rounds are over
		for n, text := range map[int]string{stillRemind: "had 25 rounds of tools without a change in files, board or mail. If",
			stillMore: "had 50 rounds of tools without a change in files, board or mail. You get as many again"} {
			if strings.Contains(before(n-1), text) || strings.Count(before(stillEnd-1), text) != 1 || !strings.Contains(before(n), text) {
				l.Errorf("%q is not said after %d rounds, or not once", text, n)
			}
		}
		if task := l.task(1); task.Attempts != 3 || task.Status != muster.NeedsAttention || !strings.Contains(task.Result, "a standstill") {
			l.Errorf("three times it is too much: %+v", task)
		}
		told := 0
		for _, m := range l.mail(muster.Lead) {
			if strings.Contains(m.Content, "alice has had 30 rounds of tools without a change in files, board or mail, "+
				"with task #1 (the parser) in hand. Its last calls: glob f") && !m.Type.News() {
				told++
			}
		}
		if told != 3 || len(l.asked) != 3*(stillEnd+1) {
			l.Errorf("asked %d times; the lead is told %d times: %+v", len(l.asked), told, l.mail(muster.Lead))
		}
	})
}

// A member whose role only reads is left in peace until as many rounds are granted once more; then the lead is told.
func TestAReaderReadsOn(t *testing.T) {
	for rounds, isTold := range map[int]bool{stillMore - 1: false, stillMore + 5: true} {
		live(t, "alice", func(l *life) {
			l.config.Limits.Turns = 0
			l.config.Roles = roles.Find("", "", "")
			l.change("alice", func(m *muster.Member) { m.Role = "reviewer" })
			l.restart("alice")
			l.create(board.Draft{Role: "reviewer"})
			l.start(append(reads(rounds), says("Nothing is wrong."))...)
			said, mail := l.heard(), fmt.Sprint(l.mail(muster.Lead))
			if strings.Contains(said, "If you have what you need") || strings.Contains(said, "as many again") != isTold ||
				strings.Contains(mail, "alice has had 50 rounds") != isTold || len(l.asked) < stillMore-1 {
				l.Errorf("after %d rounds a reader has heard %s, and the lead %s", len(l.asked), said, mail)
			}
		})
	}
}

// What a command changes in the lane is a change, and so is mail, on either way; a call that fails is none.
func TestWhatEndsAStandstill(t *testing.T) {
	n := 0
	for name, c := range map[string]struct {
		act  func(l *life) turn
		ends bool
	}{
		"a command that changes files": {func(l *life) turn {
			return calls("bash", map[string]any{"command": "echo > f"}, func() { n++; l.rows.files = fmt.Sprint(n) })
		}, true},
		"a command that changes none": {func(*life) turn { return calls("bash", map[string]any{"command": "echo hello"}) }, false},
		"mail to the lead": {func(*life) turn {
			return calls("send_message", map[string]any{"to": "lead", "content": "I read."})
		}, true},
		"mail to nobody":    {func(*life) turn { return calls("send_message", map[string]any{"to": "ghost", "content": "x"}) }, false},
		"mail of the lead":  {func(l *life) turn { return reading(func() { l.send(muster.MailMessage, "lead", "alice", "Go on.") }) }, true},
		"a task":            {func(*life) turn { return calls("task_create", map[string]any{"subject": "more"}) }, true},
		"its own todo list": {func(*life) turn { return calls("todo", map[string]any{"items": []any{}}) }, false},
		"reading":           {func(*life) turn { return reading() }, false},
		"a lane that cannot be looked at": {func(l *life) turn {
			return calls("bash", map[string]any{"command": "echo"}, func() { l.rows.fail["fingerprint"] = errTest })
		}, false},
	} {
		live(t, "alice", func(l *life) {
			l.unlimited()
			turns := append(reads(stillRemind-1), c.act(l))
			l.start(append(turns, says("Done."), says("Done."), says("Done."))...)
			if reminded := strings.Contains(l.heard(), "25 rounds of tools"); reminded == c.ends {
				l.Errorf("%s: reminded: %v", name, reminded)
			}
		})
	}
}

// What a background job writes later is a change, too.
func TestAJobMayWriteLater(t *testing.T) {
	live(t, "alice", func(l *life) {
		l.unlimited()
		turns := append([]turn{calls("bash", map[string]any{"command": "make", "background": true})}, reads(stillRemind-2)...)
		l.start(append(turns, reading(func() { l.rows.files = "changed" }), says("Done."), says("Done."), says("Done."))...)
		if strings.Contains(l.heard(), "25 rounds of tools") {
			l.Errorf("she hears %s", l.heard())
		}
		l.jobs.Stop()
	})
}

func reading(then ...func()) turn {
	return calls("glob", map[string]any{"pattern": "other"}, then...)
}

// In a lane where a look at the files takes long there are few; before a limit acts it is looked all the same.
func TestLooksAtFilesAreRare(t *testing.T) {
	for name, c := range map[string]struct {
		takes           time.Duration
		changed, reads  int // the round in which files change, and how many rounds run no command
		looks, reminded int
	}{
		"at once":                 {0, 0, 0, 27, 1},
		"long":                    {time.Second, 0, 0, 2, 1},
		"long, and files changed": {time.Second, 5, 0, 2, 0},
		"no command runs":         {time.Second, 0, 27, 0, 1},
	} {
		live(t, "alice", func(l *life) {
			l.rows.lookTakes = c.takes
			l.unlimited()
			var turns []turn
			for n := 1; n <= 27-c.reads; n++ {
				turns = append(turns, calls("bash", map[string]any{"command": fmt.Sprint("echo ", n)}, func() {
					if n == c.changed {
						l.rows.files = "changed"
					}
				}))
			}
			l.start(append(turns, append(reads(c.reads), says("Done."), says("Done."), says("Done."))...)...)
			time.Sleep(10 * c.takes)
			synctest.Wait()
			if n := strings.Count(l.heard(), "25 rounds of tools"); l.rows.looks != c.looks || n != c.reminded {
				l.Errorf("%s: %d looks, reminded %d times", name, l.rows.looks, n)
			}
		})
	}
}

// A member cannot go on for ever by jobs that wake it: the rounds are counted across phases. To ask after a job that
// runs is to wait.
func TestJobsDoNotHideAStandstill(t *testing.T) {
	live(t, "alice", func(l *life) {
		l.unlimited()
		var turns []turn
		for n := range stillEnd {
			turns = append(turns, calls("bash", map[string]any{"command": fmt.Sprint("make ", n), "background": true}), says("I wait."))
		}
		l.start(turns...)
		for range stillEnd {
			synctest.Wait()
			if n := len(l.commands.running); n > 0 {
				last := l.commands.running[n-1]
				l.commands.running = nil // before the next command starts
				close(last.done)
			}
		}
		synctest.Wait()
		events := l.events(journal.TaskReleased)
		if l.task(1).Attempts != 1 || len(events) != 1 || events[0].Fields["reason"] != errStandstill.Error() {
			l.Errorf("asked %d times: %+v; %v", len(l.asked), l.task(1), events)
		}
	})
	live(t, "alice", func(l *life) {
		l.unlimited()
		turns := []turn{calls("bash", map[string]any{"command": "make", "background": true})}
		for range stillRemind * 2 {
			turns = append(turns, calls("check_background", map[string]any{"job_id": "1"}))
		}
		l.start(turns...)
		if strings.Contains(l.heard(), "rounds of tools") {
			l.Errorf("to wait for a job is taken for a standstill: %s", l.heard())
		}
		l.jobs.Stop()
	})
}

// The lead's standstill is told to the user. With nothing open its answer is the result of the run; otherwise the run
// stops. What it has read for the first time is progress.
func TestAStandstillOfTheLead(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		l.config.Limits.Turns = 0
		l.restart(muster.Lead)
		l.start(append(reads(stillEnd), says("It is sound."))...)
		if !l.hasEnded() || l.err != nil || l.end != (End{Text: "It is sound."}) || len(l.asked) != stillEnd+1 {
			l.Errorf("asked %d times, it ended with %+v, %v", len(l.asked), l.end, l.err)
		}
		if e := l.events(journal.RunNote); len(e) != 1 || !strings.Contains(e[0].Fields["text"].(string), "lead has had 30 rounds") {
			l.Errorf("the user sees %+v", e)
		}
	})
}

// TestALongReviewIsProgress: a lead without a task reads more files than a standstill has rounds.
func TestALongReviewIsProgress(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		l.config.Limits.Turns, l.run.Cap, l.rows.changed = 0, 0, false
		l.restart(muster.Lead)
		var turns []turn
		for i := range 110 {
			name := fmt.Sprintf("f%d.go", i)
			l.must(os.WriteFile(filepath.Join(l.rows.dir, name), []byte(strings.Repeat(name+" is a file.\n", 40)), 0o600))
			turns = append(turns, calls("read_file", map[string]any{"path": name}))
		}
		l.start(append(turns, says("All is well."))...)
		if !l.hasEnded() || l.err != nil || l.end != (End{Text: "All is well."}) || strings.Contains(l.heard(), "rounds of tools") {
			l.Errorf("asked %d times, it ended with %+v, %v: %s", len(l.asked), l.end, l.err, l.heard())
		}
	})
}

// Why a member is idle: it waits for an answer, or for tasks, or its model has stopped. One that was idle when its
// process began is idle for the same reason.
func TestIdleReason(t *testing.T) {
	begun, idle := counters{started: time.Now()}, muster.Member{Status: muster.Idle, IdleReason: muster.IdleTasks}
	over := begun
	over.over = true
	for _, c := range []struct {
		counters counters
		asks     bool
		want     muster.IdleReason
	}{{over, true, muster.IdleMessages}, {over, false, muster.IdleTasks}, {counters{}, false, muster.IdleTasks}, {begun, false, muster.IdleNoToolUse}} {
		if got := c.counters.idleReason(c.asks, idle); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
